--- What a person is told: one line each, never one that makes the editor wait for a key.

local M = { said = {} }

-- How much is kept for :McpLog.
local KEPT = 200

local function keep(text)
  table.insert(M.said, os.date("%H:%M:%S ") .. text)
  if #M.said > KEPT then
    table.remove(M.said, 1)
  end
end

--- Whether a function is Neovim's own and nobody put a better one in its place.
function M.own(call)
  local source = debug.getinfo(call, "S").source
  return source:find("^@vim/") ~= nil or source:find(vim.env.VIMRUNTIME, 1, true) ~= nil
end

local function fitting(text)
  local width = math.max(vim.v.echospace, 20)
  if vim.fn.strdisplaywidth(text) <= width then
    return text
  end
  -- A longer one would ask for a key, and everything would wait for that.
  local tail = "… :McpLog"
  local head = vim.fn.strcharpart(text, 0, width - #tail)
  while vim.fn.strdisplaywidth(head .. tail) > width do
    head = vim.fn.strcharpart(head, 0, vim.fn.strchars(head) - 1)
  end
  return head .. tail
end

local function say(text, level)
  text = "mcpclient: " .. vim.fn.strtrans((text:gsub("%s*\n%s*", "; ")))
  keep(text)
  vim.notify(M.own(vim.notify) and fitting(text) or text, level)
end

function M.error(text)
  say(text, vim.log.levels.ERROR)
end

function M.warn(text)
  say(text, vim.log.levels.WARN)
end

function M.info(text)
  say(text, vim.log.levels.INFO)
end

--- Keep lines for :McpLog without showing them.
function M.note(lines)
  for _, line in ipairs(lines) do
    if line ~= "" then
      keep(vim.fn.strtrans(line))
    end
  end
end

--- Call a function; what goes wrong in it is told, and nothing else stops for it.
function M.guard(call, ...)
  local ok, problem = pcall(call, ...)
  if not ok then
    M.error(tostring(problem))
  end
end

return M
