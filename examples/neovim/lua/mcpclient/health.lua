--- :checkhealth mcpclient

local M = {}

local lacking = [[
import importlib, sys
print("python", ".".join(map(str, sys.version_info[:3])), sys.version_info >= (3, 11))
for name in ("mcpclient", "pynvim"):
    try:
        found = importlib.import_module(name)
        print(name, getattr(found, "__version__", "found"), True)
    except Exception as problem:
        print(name, type(problem).__name__, False)
]]

function M.check()
  local backend = require("mcpclient.backend")
  local health = vim.health or require("health")
  local start = health.start or health.report_start
  local ok = health.ok or health.report_ok
  local warn = health.warn or health.report_warn
  local bad = health.error or health.report_error
  local info = health.info or health.report_info

  start("mcpclient: the Python")
  local python = backend.python()
  if vim.fn.executable(python) == 0 then
    bad(("%s cannot be run"):format(python), { 'require("mcpclient").setup{python = "…"}' })
    return
  end
  local lines = vim.fn.systemlist({ python, "-c", lacking })
  if vim.v.shell_error ~= 0 then
    bad(("%s does not work: %s"):format(python, lines[#lines] or "it says nothing"))
    return
  end
  for _, line in ipairs(lines) do
    local name, version, good = line:match("^(%S+) (%S+) (%S+)$")
    if good == "True" then
      ok(("%s %s"):format(name, version))
    elseif name == "python" then
      bad(("%s is Python %s, and 3.11 is needed"):format(python, version))
    elseif name then
      bad(("%s has no %s"):format(python, name), {
        ("%s -m pip install %s"):format(python, name),
      })
    end
  end

  start("mcpclient: the servers")
  if not backend.process() then
    info("the backend is not running; the first command starts it")
    return
  end
  ok("the backend is running")
  for _, server in ipairs(backend.servers) do
    local text = ("%s: %s"):format(vim.fn.strtrans(server.name), server.state)
    if server.state == "failed" or server.state == "waiting" then
      bad(text .. (server.last ~= "" and (", " .. server.last) or ""), {
        (":McpLog %s"):format(server.name),
      })
    elseif server.last ~= "" then
      warn(("%s; last, %s"):format(text, server.last))
    else
      ok(text)
    end
  end
end

return M
