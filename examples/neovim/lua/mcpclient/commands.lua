--- What the commands do. Each returns at once; what comes of it is shown when it comes.

local backend = require("mcpclient.backend")
local pages = require("mcpclient.pages")
local report = require("mcpclient.report")
local words = require("mcpclient.words")

local M = {}

local namespace = vim.api.nvim_create_namespace("mcpclient")
local running = {} -- by number: how the window of a running tool is told how far it is

backend.listen(function()
  for _, call in ipairs(backend.running) do
    if running[call.number] then
      running[call.number](backend.progress(call))
    end
  end
end)

local function failed(problem)
  if not problem.quiet then
    report.error(problem.text)
  end
end

-- -- servers ----------------------------------------------------------------------------------

local function life(verb)
  return function(given)
    backend.request(verb, { given[1] }, function(problem, text)
      if problem then
        failed(problem)
      else
        report.info(text)
      end
    end)
  end
end

M.start, M.stop, M.restart = life("start"), life("stop"), life("restart")

function M.servers(_, options)
  pages.open_servers(options.mods)
end

function M.log(given, options)
  pages.open_log(given[1] or "", options.mods)
end

function M.resource(given, options)
  if #given ~= 2 then
    error("give a server and a URI: :McpResource SERVER URI", 0)
  end
  pages.open_resource(given[1], given[2], options.mods)
end

function M.cancel()
  for _, call in ipairs(backend.running) do
    report.info(("%s.%s is cancelled"):format(call.server, call.tool))
    backend.stop_request(call.number)
  end
end

-- -- tools and prompts ------------------------------------------------------------------------

--- A range of lines that is to be replaced, wherever it moves meanwhile.
local function range_to_replace(buf, first, last)
  local before = vim.api.nvim_buf_get_lines(buf, first - 1, last, false)
  local marks = {
    vim.api.nvim_buf_set_extmark(buf, namespace, first - 1, 0, {}),
    vim.api.nvim_buf_set_extmark(buf, namespace, last - 1, 0, {}),
  }
  --- Replace it, or forget it if lines is nil; return why that could not be.
  return function(lines)
    if not vim.api.nvim_buf_is_loaded(buf) then
      return "the buffer is gone"
    end
    local rows = {}
    for place, mark in ipairs(marks) do
      rows[place] = vim.api.nvim_buf_get_extmark_by_id(buf, namespace, mark, {})[1]
      vim.api.nvim_buf_del_extmark(buf, namespace, mark)
    end
    if not lines then
      return
    end
    local now = vim.api.nvim_buf_get_lines(buf, rows[1], rows[2] + 1, false)
    if not vim.deep_equal(now, before) then
      return "the text was changed meanwhile"
    elseif not vim.bo[buf].modifiable then
      return "the buffer cannot be changed"
    end
    vim.api.nvim_buf_set_lines(buf, rows[1], rows[2] + 1, false, lines)
  end
end

--- The words for the backend, with the buffer's text where it is asked for; and which lines.
local function with_text(given, options)
  local found, first, last = {}, nil, nil
  for place = 3, #given do
    local word = given[place]
    local name, value = word.text:match("^([^=]+)=(.*)$")
    if name and word.plain and not name:match(":$") and (value == "%" or value == "<range>") then
      first, last = 1, vim.fn.line("$")
      if value == "<range>" then
        if options.range == 0 then
          error("<range> needs one: :%McpTool …, or lines selected", 0)
        end
        first, last = options.line1, options.line2
      end
      local lines = vim.api.nvim_buf_get_lines(0, first - 1, last, false)
      table.insert(found, name .. "=" .. table.concat(lines, "\n"))
    else
      table.insert(found, word.text)
    end
  end
  if options.range > 0 then
    if not first and not options.bang then
      error("the range goes nowhere: give it to an argument, as in text=<range>", 0)
    end
    first, last = options.line1, options.line2
  end
  return found, first, last
end

function M.tool(given, options)
  local server, tool = given[1], given[2]
  if not tool then
    error("give a server and a tool: :McpTool SERVER TOOL [name=value | name:=json]…", 0)
  end
  local arguments, first, last = with_text(given, options)
  local title = vim.fn.strtrans(("%s.%s"):format(server.text, tool.text))
  local replace, show, tell, close
  local number
  if options.bang then
    if not first then
      error("! replaces lines: give a range, or the whole buffer by an argument text=%", 0)
    elseif not vim.bo.modifiable then
      error("the buffer cannot be changed: leave out the !", 0)
    end
    replace = range_to_replace(vim.api.nvim_get_current_buf(), first, last)
  else
    show, tell, close = pages.result(title, options.mods, function()
      running[number] = nil
      backend.cancel(number)
    end)
  end
  number = backend.request("tool", { server.text, tool.text, arguments }, function(problem, result)
    running[number] = nil
    if problem then
      failed(problem)
      if replace then
        replace(nil)
      elseif problem.lines and #problem.lines > 0 then
        show(problem.lines)
      else
        close()
      end
    elseif replace then
      local why = replace(result.text)
      if why then
        report.warn(("%s; the answer of %s is in a window of its own"):format(why, title))
        pages.result(title, "", function() end)(result.lines)
      end
    else
      show(result.lines)
    end
  end)
  running[number] = tell
end

function M.prompt(given, options)
  local server, prompt = given[1], given[2]
  if not prompt then
    error("give a server and a prompt: :McpPrompt SERVER PROMPT [name=value]…", 0)
  end
  local arguments = with_text(given, options)
  local number
  local show, _, close = pages.result(
    vim.fn.strtrans(("%s.%s"):format(server.text, prompt.text)),
    options.mods,
    function()
      backend.cancel(number)
    end
  )
  number = backend.request("prompt", { server.text, prompt.text, arguments }, function(problem, lines)
    if problem then
      failed(problem)
      close()
    else
      show(lines)
    end
  end)
end

-- -- from the command line --------------------------------------------------------------------

local WORDS = { tool = true, prompt = true }

--- Do what a user command says; what is wrong with it is told in one line.
function M.run(verb, options)
  local given, problem = words.split(options.args or "")
  if problem then
    report.error(problem)
    return
  end
  if not WORDS[verb] then
    given = vim.tbl_map(function(word)
      return word.text
    end, given)
  end
  local ok, why = pcall(M[verb], given, options)
  if not ok then
    report.error((tostring(why):gsub("^Vim[^:]*:", "")))
  end
end

return M
