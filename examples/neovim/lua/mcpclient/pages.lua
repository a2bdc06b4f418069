--- Buffers that show what the backend knows: resources, the table of servers, logs, results.
--- What is in them is the servers' text; it is shown, and never taken for an instruction.

local backend = require("mcpclient.backend")
local report = require("mcpclient.report")

local M = {}

local SERVERS = "mcp-servers://"
local shown = {} -- by buffer: what it shows last, so that :e does not flicker
local followed = {} -- by buffer: the number it is followed by

-- -- names ------------------------------------------------------------------------------------

local function encode(server)
  return (server:gsub("[%%/%c]", function(char)
    return ("%%%02X"):format(char:byte())
  end))
end

local function decode(text)
  return (text:gsub("%%(%x%x)", function(digits)
    return string.char(tonumber(digits, 16))
  end))
end

--- The name of the buffer of a resource.
function M.name(server, uri)
  return "mcp://" .. encode(server) .. "/" .. uri
end

local function meaning(name)
  local server, uri = name:match("^mcp://([^/]+)/(.+)$")
  if server then
    return decode(server), uri
  end
end

-- -- text into buffers ------------------------------------------------------------------------

local function prepare(buf, kind)
  local options = vim.bo[buf]
  options.buftype = kind or "nowrite"
  options.swapfile = false
  options.undolevels = -1
  options.modeline = false -- a server's text sets no options
  options.modifiable = false
end

--- Replace the text of a buffer; no cursor and no window moves.
local function put(buf, lines)
  shown[buf] = lines
  if vim.deep_equal(vim.api.nvim_buf_get_lines(buf, 0, -1, false), lines) then
    return
  end
  local views = {}
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    views[win] = vim.api.nvim_win_call(win, vim.fn.winsaveview)
  end
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].modified = false
  for win, view in pairs(views) do
    vim.api.nvim_win_call(win, function()
      vim.fn.winrestview(view)
    end)
  end
end

local function on_end(buf, events, act)
  vim.api.nvim_create_autocmd(events, { buffer = buf, once = true, callback = act })
end

-- -- resources --------------------------------------------------------------------------------

local function unfollow(buf)
  if followed[buf] then
    backend.unfollow(followed[buf])
    followed[buf] = nil
  end
end

local function read_resource(buf, name)
  local server, uri = meaning(name)
  if not server then
    report.error(("%s names no resource: mcp://SERVER/URI"):format(name))
    return
  end
  unfollow(buf)
  vim.b[buf].mcpclient = { server = server, uri = uri, follows = false }
  followed[buf] = backend.follow(server, uri, function(page)
    if not vim.api.nvim_buf_is_loaded(buf) then
      return
    end
    if page.problem then
      if not page.quiet then
        report.error(page.problem)
      end
      return
    end
    put(buf, page.lines)
    vim.b[buf].mcpclient = { server = server, uri = uri, follows = page.follows }
    if page.filetype ~= "" and vim.bo[buf].filetype == "" then
      vim.bo[buf].filetype = page.filetype
    end
  end)
  vim.api.nvim_create_autocmd({ "BufUnload", "BufWipeout" }, {
    group = vim.api.nvim_create_augroup("mcpclient_follow_" .. buf, {}),
    buffer = buf,
    callback = function(event)
      unfollow(buf)
      if event.event == "BufWipeout" then
        shown[buf] = nil
      end
    end,
  })
end

--- Follow again what was followed: the backend is a new one.
function M.resume()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    local name = vim.api.nvim_buf_get_name(buf)
    if vim.api.nvim_buf_is_loaded(buf) and name:match("^mcp://") then
      -- Unless it was opened just now, and this is what started the backend.
      if not followed[buf] or not backend.follows(followed[buf]) then
        read_resource(buf, name)
      end
    end
  end
end

-- -- the table of servers ---------------------------------------------------------------------

local COLUMNS = { "name", "state", "era", "version", "pid", "life", "calls", "in_flight" }

local function cell(server, column)
  local value = tostring(server[column] or "")
  return (value == "" or (column == "pid" and value == "0")) and "-" or vim.fn.strtrans(value)
end

local function servers_table()
  local rows = { vim.tbl_map(function(column)
    return (column:gsub("name", "server"):gsub("_", " "))
  end, COLUMNS) }
  for _, server in ipairs(backend.servers) do
    table.insert(rows, vim.tbl_map(function(column)
      return cell(server, column)
    end, COLUMNS))
  end
  local widths = {}
  for _, row in ipairs(rows) do
    for place, text in ipairs(row) do
      widths[place] = math.max(widths[place] or 0, vim.fn.strdisplaywidth(text))
    end
  end
  local lines = {}
  for _, row in ipairs(rows) do
    local cells = {}
    for place, text in ipairs(row) do
      cells[place] = text .. (" "):rep(widths[place] - vim.fn.strdisplaywidth(text))
    end
    table.insert(lines, (table.concat(cells, "  "):gsub("%s+$", "")))
  end
  for _, server in ipairs(backend.servers) do
    if server.last ~= "" then
      table.insert(lines, ("%s: last, %s"):format(cell(server, "name"), server.last))
    end
  end
  vim.list_extend(lines, { "", "s start  x stop  r restart  l log" })
  return lines
end

local function read_servers(buf)
  local server_keys = { s = "start", x = "stop", r = "restart", l = "log" }
  for key, verb in pairs(server_keys) do
    vim.keymap.set("n", key, function()
      local server = backend.servers[vim.fn.line(".") - 1]
      if server then
        require("mcpclient.commands")[verb]({ server.name }, { mods = "" })
      end
    end, { buffer = buf, nowait = true, desc = verb .. " the server of this line" })
  end
  put(buf, servers_table())
  backend.wake()
end

local function refresh()
  local buf = vim.fn.bufnr("^" .. SERVERS .. "$")
  if buf > 0 and vim.api.nvim_buf_is_loaded(buf) then
    put(buf, servers_table())
  end
end

-- -- logs -------------------------------------------------------------------------------------

local function read_log(buf, server)
  if server == "" then
    put(buf, vim.list_extend({ "# What mcpclient said", "" }, report.said))
    return
  end
  backend.request("log", { server }, function(problem, lines)
    if problem then
      if not problem.quiet then
        report.error(problem.text)
      end
    elseif vim.api.nvim_buf_is_loaded(buf) then
      put(buf, lines)
      vim.bo[buf].filetype = "markdown"
    end
  end)
end

--- Fill a buffer of ours, by its name: the event BufReadCmd.
function M.read(buf, name)
  prepare(buf)
  if shown[buf] then
    put(buf, shown[buf])
  end
  if name:sub(1, #SERVERS) == SERVERS then
    read_servers(buf)
  elseif name:match("^mcp%-log://") then
    read_log(buf, decode(name:sub(#"mcp-log://" + 1)))
  else
    read_resource(buf, name)
  end
end

--- Show a buffer of ours: in the window where it is already, else where `mods` say.
function M.open(name, mods)
  local buf = vim.fn.bufnr("^" .. vim.fn.fnameescape(name) .. "$")
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if buf > 0 and vim.api.nvim_win_get_buf(win) == buf and mods ~= "edit" then
      vim.api.nvim_set_current_win(win)
      vim.cmd("edit")
      return
    end
  end
  local how = mods == "edit" and "edit" or (mods .. " split")
  vim.cmd(how .. " " .. vim.fn.fnameescape(name))
end

function M.open_servers(mods)
  M.open(SERVERS, mods)
end

function M.open_log(server, mods)
  M.open("mcp-log://" .. encode(server), mods)
end

function M.open_resource(server, uri, mods)
  M.open(M.name(server, uri), mods == "" and "edit" or mods)
end

-- -- results ----------------------------------------------------------------------------------

local results = 0

--- Open a window for what will come, and stay where we are. Returns three functions: one that
--- shows lines there, one that tells how far it is, and one that takes the window away again.
--- Closing it while nothing has come calls on_close.
function M.result(title, mods, on_close)
  results = results + 1
  local here = vim.api.nvim_get_current_win()
  vim.cmd(("keepalt %s new"):format(mods))
  local buf, win = vim.api.nvim_get_current_buf(), vim.api.nvim_get_current_win()
  prepare(buf, "nofile")
  vim.bo[buf].bufhidden = "wipe"
  vim.bo[buf].buflisted = false
  vim.api.nvim_buf_set_name(buf, ("mcp-result://%d/%s"):format(results, title))
  put(buf, { ("%s is running …"):format(title) })
  vim.api.nvim_set_current_win(here)
  local over = false
  on_end(buf, "BufWipeout", function()
    shown[buf] = nil
    if not over then
      over = true
      on_close()
    end
  end)
  local function show(lines)
    over = true
    if vim.api.nvim_buf_is_valid(buf) then
      put(buf, lines)
      vim.bo[buf].filetype = "markdown"
    end
  end
  local function tell(text)
    if not over and vim.api.nvim_buf_is_valid(buf) then
      put(buf, { ("%s is running: %s"):format(title, vim.fn.strtrans(text)) })
    end
  end
  local function close()
    over = true
    if vim.api.nvim_win_is_valid(win) and vim.api.nvim_win_get_buf(win) == buf then
      -- The last window cannot be closed; then it stays, empty.
      pcall(vim.api.nvim_win_close, win, true)
    end
  end
  return show, tell, close
end

backend.listen(refresh)

return M
