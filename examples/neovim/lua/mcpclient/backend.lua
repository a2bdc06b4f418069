--- The Python process: started when first needed, asked by number, heard by callbacks.
--- Nothing here waits for it: there is no rpcrequest, only rpcnotify and what comes back.

local report = require("mcpclient.report")

local M = {
  servers = {}, -- the rows of the table of servers
  running = {}, -- the tools that run, oldest first
  catalogs = {}, -- by server: what there is to complete
}

local root = debug.getinfo(1, "S").source:sub(2):match("^(.*)/lua/mcpclient/[^/]*$")
-- News are taken at most so often, in milliseconds: more than the eye can follow is no use.
local PACE = 50
-- For so long a list of what a server offers is good enough, in milliseconds; changes that the
-- server tells of come by themselves.
local FRESH = 5000

local options = {}
local channel
local leaving = false
local number = 0
local pending = {} -- by number: called once, with a problem or a value
local following = {} -- by number: called with each page
local asked = {} -- by server: when it was asked what it offers
local listeners = {}

function M.setup(given)
  options = given
  if channel then
    M.stop() -- the next command starts it with these
  end
end

--- The names that are known without asking anybody.
function M.names()
  local found = {}
  for _, server in ipairs(M.servers) do
    table.insert(found, server.name)
  end
  if #found == 0 then
    found = vim.tbl_keys(options.servers or {})
    table.sort(found)
  end
  return found
end

--- Have a function called after each change of what is known.
function M.listen(listener)
  table.insert(listeners, listener)
end

local function tell_listeners()
  for _, listener in ipairs(listeners) do
    report.guard(listener)
  end
end

function M.python()
  local python = options.python or vim.g.python3_host_prog or "python3"
  return vim.fn.expand(python)
end

function M.process()
  return channel
end

local function lost(words)
  channel = nil
  local waiting = pending
  pending, following = {}, {}
  M.servers, M.running, M.catalogs = {}, {}, {}
  asked = {}
  require("mcpclient.asks").clear()
  if words then
    report.error(words)
  end
  for _, callback in pairs(waiting) do
    report.guard(callback, { text = words or "the backend was stopped", quiet = true })
  end
  tell_listeners()
end

--- What it said last on stderr that is a sentence.
local function last_words(said)
  for place = #said, 1, -1 do
    if said[place]:match("%S") then
      return ": " .. vim.fn.strtrans(said[place])
    end
  end
  return ""
end

local function start()
  if channel then
    return true
  end
  local said = { "" }
  local python = M.python()
  local job
  local ok, problem = pcall(function()
    job = vim.fn.jobstart({ python, root .. "/python/mcpclient_nvim" }, {
      rpc = true,
      -- Its stdin ends with the editor, whatever ends that; leaving does not wait for servers.
      detach = true,
      on_stderr = function(_, lines)
        said[#said] = (said[#said] .. lines[1]):sub(-2000)
        vim.list_extend(said, lines, 2)
        while #said > 100 do
          table.remove(said, 1)
        end
      end,
      on_exit = function(id, code)
        if id == channel and not leaving then
          local words = "the backend ended (exit code %d)%s; the next command starts it again"
          report.note(said)
          lost(words:format(code, last_words(said)))
        end
      end,
    })
  end)
  if not ok or job <= 0 then
    local why = ok and "" or (" (" .. tostring(problem):gsub("^.*E%d+: ", "") .. ")")
    report.error(
      ('"%s" cannot be run%s; name a Python with mcpclient and pynvim: '):format(python, why)
        .. 'require("mcpclient").setup{python = "…"}'
    )
    return false
  end
  channel = job
  local wire = { config = options.config, servers = options.servers, roots = options.roots }
  M.send("setup", next(wire) == nil and vim.empty_dict() or wire)
  -- What a backend before this one followed is followed again.
  vim.schedule(function()
    require("mcpclient.pages").resume()
  end)
  return true
end

--- Say something, if there is somebody to say it to. Never waits.
function M.send(...)
  if channel then
    -- A channel that has just closed raises; its on_exit tells the rest.
    pcall(vim.fn.rpcnotify, channel, ...)
  end
end

--- Ask for something; callback(problem, value) comes later. Returns the request's number.
function M.request(verb, arguments, callback)
  number = number + 1
  local mine = number
  if not start() then
    vim.schedule(function()
      report.guard(callback, { text = "there is no backend", quiet = true })
    end)
    return mine
  end
  pending[mine] = callback
  M.send("request", mine, verb, arguments)
  return mine
end

--- Drop a request; its callback is not called any more.
function M.cancel(mine)
  if pending[mine] then
    pending[mine] = nil
    M.send("cancel", mine)
  end
end

--- Cancel a request whoever asked; its callback is told so.
function M.stop_request(mine)
  local callback = pending[mine]
  M.cancel(mine)
  if callback then
    report.guard(callback, { text = "it was cancelled", quiet = true })
  end
end

--- Follow a resource: on_page(page) comes now and after each change. Returns a number to end it.
function M.follow(server, uri, on_page)
  local mine = M.request("follow", { server, uri }, function(problem)
    on_page({ problem = problem.text, quiet = problem.quiet })
  end)
  if channel then
    following[mine] = on_page
  end
  return mine
end

--- Whether this backend knows of what is followed by a number.
function M.follows(mine)
  return following[mine] ~= nil
end

function M.unfollow(mine)
  following[mine] = nil
  if pending[mine] then
    M.cancel(mine)
  end
end

--- Find out in the background what a server offers; it comes with the news. What was asked a
--- moment ago is not asked again: who completes presses the key more than once.
function M.know(server)
  local now = vim.loop.now()
  if not asked[server] or now - asked[server] > FRESH then
    asked[server] = now
    M.request("catalog", { server }, function(problem)
      if problem then
        asked[server] = nil
      end
    end)
  end
end

--- What a running tool is at, in a few words.
function M.progress(call)
  local text = call.tool
  if call.percent >= 0 then
    text = ("%s %d%%"):format(text, call.percent)
  end
  return call.message ~= "" and (text .. " " .. call.message) or text
end

--- Have it started, if it is not: for what only shows what is known.
function M.wake()
  return start()
end

--- End it, and with it all servers.
function M.stop()
  local id = channel
  if id then
    lost()
    vim.fn.chanclose(id)
  end
end

-- -- from the backend -------------------------------------------------------------------------

local hear = {}

function hear.answer(mine, value)
  local callback = pending[mine]
  pending[mine] = nil
  if callback then
    callback(nil, value ~= vim.NIL and value or nil)
  end
end

function hear.failed(mine, problem)
  local callback = pending[mine]
  pending[mine], following[mine] = nil, nil
  if callback then
    callback(problem)
  end
end

function hear.page(mine, page)
  if following[mine] then
    report.guard(following[mine], page)
    M.send("drawn", mine)
  end
end

function hear.news(news)
  vim.defer_fn(function()
    M.send("taken")
  end, PACE)
  M.servers, M.running = news.servers, news.running
  for server, catalog in pairs(news.catalogs) do
    M.catalogs[server] = catalog
  end
  tell_listeners()
end

function hear.ask(mine, question)
  require("mcpclient.asks").ask(mine, question)
end

function hear.unasked(mine)
  require("mcpclient.asks").unask(mine)
end

function hear.report(level, text)
  report[level](text)
end

--- Called by the backend.
function M.receive(kind, ...)
  report.guard(hear[kind], ...)
end

vim.api.nvim_create_autocmd("VimLeavePre", {
  group = vim.api.nvim_create_augroup("mcpclient_leaving", {}),
  callback = function()
    leaving = true
    if channel then
      pcall(vim.fn.chanclose, channel)
    end
  end,
})

return M
