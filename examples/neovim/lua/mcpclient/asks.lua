--- What servers ask a person: one question at a time, and only when nothing is being typed.
--- The person may take all the time the backend gives; nothing waits for it here.

local backend = require("mcpclient.backend")
local report = require("mcpclient.report")

local M = {}

local waiting = {} -- the questions, oldest first: {number = …, question = …}
local current -- the one that is being asked
local take_next

local function answer(mine, action, values)
  if current == mine then
    current = nil
    local given = next(values or {}) == nil and vim.empty_dict() or values
    backend.send("answer", mine, action, given)
    take_next()
  end
end

--- Have a text entered: done(nil) if the person leaves.
local function enter(prompt, default, done)
  if not report.own(vim.ui.input) then
    vim.ui.input({ prompt = prompt, default = default }, done)
    return
  end
  -- Neovim's own cannot tell an empty text from leaving.
  local left = "\24"
  local ok, text = pcall(vim.fn.input, { prompt = prompt, default = default, cancelreturn = left })
  done(ok and text ~= left and text or nil)
end

--- Have one of some choices made: done(nil) if the person leaves.
local choose
function choose(choices, about, done)
  if not report.own(vim.ui.select) then
    vim.ui.select(choices, { prompt = about }, function(_, index)
      done(index)
    end)
    return
  end
  -- Neovim's own lets nothing else happen until a number is typed; a line of input does.
  local listed = {}
  for index, choice in ipairs(choices) do
    listed[index] = ("%d %s"):format(index, choice)
  end
  enter(("%s (%s): "):format(about, table.concat(listed, ", ")), "", function(text)
    local index = tonumber(text)
    if text and not choices[index] then
      choose(choices, about, done)
    else
      done(index)
    end
  end)
end

local function next_field(mine, question, place, values)
  local field = question.fields[place]
  if current ~= mine then
    return
  elseif not field then
    answer(mine, "accept", values)
    return
  end
  local function go_on(value)
    if value ~= nil then
      values[field.name] = value
      next_field(mine, question, place + 1, values)
    else
      answer(mine, "cancel")
    end
  end
  local label = field.label .. (field.required and "" or " (may be left out)")
  if #field.choices > 0 then
    local choices = vim.deepcopy(field.choices)
    if not field.required then
      table.insert(choices, "(leave it out)")
    end
    choose(choices, label, function(index)
      go_on(index and (field.values[index] or ""))
    end)
  else
    enter(("%s [%s]: "):format(label, field.kind), field.default, go_on)
  end
end

local function open_page(url)
  for _, program in ipairs({ "xdg-open", "open" }) do
    if vim.fn.executable(program) == 1 then
      vim.fn.jobstart({ program, url }, { detach = true })
      return
    end
  end
  report.info("open it yourself: " .. url)
end

local function begin(mine, question)
  local page = question.url ~= ""
  local about = ("%s asks: %s"):format(question.server, question.message)
  if page then
    about = about .. " " .. question.url
  elseif question.problem ~= "" then
    about = ("%s (%s)"):format(about, question.problem)
  end
  -- A key that was meant for something else must not answer a server.
  local choices = { page and "Open the page" or "Answer", "Decline" }
  choose(choices, about, function(index)
    if index == 1 and page then
      open_page(question.url)
      answer(mine, "accept")
    elseif index == 1 then
      next_field(mine, question, 1, {})
    else
      answer(mine, index == 2 and "decline" or "cancel")
    end
  end)
end

--- Whether a question may be put now: not into the middle of what is being typed.
local function quiet()
  local mode = vim.api.nvim_get_mode()
  return mode.mode == "n" and not mode.blocking
end

function take_next()
  vim.schedule(function()
    if not current and waiting[1] and quiet() then
      local one = table.remove(waiting, 1)
      current = one.number
      report.guard(begin, one.number, one.question)
    end
  end)
end

function M.ask(mine, question)
  table.insert(waiting, { number = mine, question = question })
  take_next()
end

function M.unask(mine)
  for place, one in ipairs(waiting) do
    if one.number == mine then
      table.remove(waiting, place)
      return
    end
  end
  if current == mine then
    current = nil
    report.info("the server no longer wants the answer")
    take_next()
  end
end

--- How many questions there are, for a status line.
function M.count()
  return #waiting + (current and 1 or 0)
end

--- The backend is gone, and so is who asked.
function M.clear()
  waiting, current = {}, nil
end

vim.api.nvim_create_autocmd("ModeChanged", {
  group = vim.api.nvim_create_augroup("mcpclient_asks", {}),
  pattern = "*:n",
  callback = take_next,
})

return M
