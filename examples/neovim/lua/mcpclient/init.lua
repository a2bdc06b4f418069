--- What a user's configuration and other plugins may call.

local M = {}

--- Say which servers there are. Nothing starts before the first command.
---
--- python: the Python that has mcpclient and pynvim; else g:python3_host_prog, else python3.
--- servers: a table by name, each {command = …, args = {…}, env = {…}} or a list of words.
--- config: instead of servers, a file with "mcpServers"; else $MCPCLIENT_CONFIG, else
---   ~/.config/mcpclient/config.json.
--- roots: a list of folders that servers may be told of.
function M.setup(options)
  require("mcpclient.backend").setup(options or {})
end

--- Call a tool; return at once. callback(problem, result) comes later: problem is nil or a
--- sentence, result has text (a list of lines) and lines (the same as Markdown).
--- Returns a function that cancels the call.
function M.call_tool(server, tool, arguments, callback)
  local backend = require("mcpclient.backend")
  local given = next(arguments or {}) == nil and vim.empty_dict() or arguments
  local number = backend.request("call", { server, tool, given }, function(problem, result)
    if callback then
      callback(problem and problem.text, result)
    end
  end)
  return function()
    backend.cancel(number)
  end
end

--- For a status line: what runs and how far it is, else how many servers are up; and how many
--- questions of servers wait. Use it as %{%v:lua.require'mcpclient'.statusline()%}
function M.statusline()
  local backend = require("mcpclient.backend")
  local text
  local call = backend.running[1]
  if call then
    text = "mcp " .. backend.progress(call)
    if #backend.running > 1 then
      text = text .. (" (+%d)"):format(#backend.running - 1)
    end
  else
    local up = 0
    for _, server in ipairs(backend.servers) do
      up = up + (server.state == "up" and 1 or 0)
    end
    text = #backend.servers > 0 and ("mcp %d/%d"):format(up, #backend.servers) or ""
  end
  local asks = package.loaded["mcpclient.asks"]
  local questions = asks and asks.count() or 0
  if questions > 0 then
    text = ("%s, %d question%s"):format(text, questions, questions > 1 and "s" or "")
  end
  -- Twice the width of most windows; and what a server says is no instruction to the status line.
  return (vim.fn.strcharpart(text, 0, 160):gsub("%%", "%%%%"))
end

return M
