--- Completion of the command line from what is known, at once. What is not known is asked for in
--- the background, for the next time.

local backend = require("mcpclient.backend")
local words = require("mcpclient.words")

local M = {}

local values = {} -- by server, prompt, argument and text: what the server completed
local asked = {}

local function named(list, name)
  for _, one in ipairs(list or {}) do
    if one.name == name then
      return one
    end
  end
end

local function names(list)
  return vim.tbl_map(function(one)
    return words.quote(one.name)
  end, list or {})
end

local function given_names(list)
  local found = {}
  for place = 3, #list - 1 do
    found[list[place].text:match("^([^:=]+)") or ""] = true
  end
  return found
end

local function tool_arguments(tool, list, lead)
  local taken, found = given_names(list), {}
  for _, one in ipairs(tool and tool.arguments or {}) do
    local begun = words.quote(one.name) .. one.sign
    if lead:sub(1, #begun) == begun then
      local options = vim.deepcopy(one.choices)
      if one.text and #options == 0 then
        options = { "%", "<range>" }
      end
      return vim.tbl_map(function(choice)
        return begun .. words.quote(choice)
      end, options)
    elseif one.many or not taken[one.name] then
      table.insert(found, begun)
    end
  end
  return found
end

--- Have the server complete a prompt's argument; return what it said to this before.
local function ask_values(server, prompt, name, text)
  local key = table.concat({ server, prompt, name, text }, "\0")
  if not asked[key] then
    asked[key] = true
    local arguments = { server, prompt, name, text }
    backend.request("complete", arguments, function(_, found)
      asked[key] = nil
      values[key] = found
    end)
  end
  -- Until it is answered, what was said to a beginning of it may do.
  for size = #text, 0, -1 do
    local known = values[table.concat({ server, prompt, name, text:sub(1, size) }, "\0")]
    if known then
      return known
    end
  end
  return {}
end

local function prompt_arguments(server, prompt, list, lead)
  if not prompt then
    return {}
  end
  local name, text = lead:match("^([^=]+)=(.*)$")
  if name then
    return vim.tbl_map(function(value)
      return name .. "=" .. words.quote(value)
    end, ask_values(server, prompt.name, name, text))
  end
  local taken, found = given_names(list), {}
  for _, one in ipairs(prompt.arguments) do
    if not taken[one] then
      table.insert(found, words.quote(one) .. "=")
    end
  end
  return found
end

local function candidates(verb, list, lead)
  if #list == 1 then
    return vim.tbl_map(words.quote, backend.names())
  end
  local server = list[1].text
  if verb == "tool" or verb == "prompt" or verb == "resource" then
    backend.know(server)
  end
  local catalog = backend.catalogs[server] or {}
  if verb == "tool" then
    if #list == 2 then
      return names(catalog.tools)
    end
    return tool_arguments(named(catalog.tools, list[2].text), list, lead)
  elseif verb == "prompt" then
    if #list == 2 then
      return names(catalog.prompts)
    end
    return prompt_arguments(server, named(catalog.prompts, list[2].text), list, lead)
  elseif verb == "resource" and #list == 2 then
    return vim.tbl_map(words.quote, catalog.uris or {})
  end
  return {}
end

--- For nvim_create_user_command: what the word at the cursor may become.
function M.complete(verb, lead, line, position)
  if not backend.wake() then
    return vim.tbl_map(words.quote, backend.names())
  end
  local before = line:sub(1, position):match("Mcp%a+!?%s+(.*)$") or ""
  local list = words.split(before, true)
  if list[#list].raw ~= lead then
    return {} -- something in quotes
  end
  return vim.tbl_filter(function(one)
    return one:sub(1, #lead) == lead
  end, candidates(verb, list, lead))
end

return M
