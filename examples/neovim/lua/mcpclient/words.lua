--- The words of a command line, split at blanks as people expect it of text and of JSON.
---
--- A quote opens only at the beginning of a word or of a value (name="two words"), so that it's
--- and name:={"a":1} stay as they are. \ makes a blank, and the first character of a word or
--- value, mean itself; in double quotes, " and \ too.

local M = {}

--- Return a list of {text = …, raw = as it was typed, plain = whether nothing was quoted}, and a
--- problem if a quote is not closed. With `open`, a blank at the end begins an empty last word.
function M.split(line, open)
  local found = {}
  local word, start, plain, quote
  local function finish(place)
    if word then
      table.insert(found, { text = word, raw = line:sub(start, place - 1), plain = plain })
    end
    word = nil
  end
  local place = 1
  while place <= #line do
    local char, next = line:sub(place, place), line:sub(place + 1, place + 1)
    if not word and not char:match("%s") then
      word, start, plain = "", place, true
    end
    local first = word == "" or (word and word:match("^[^=]*[^:=]=$") ~= nil)
    if quote then
      if char == quote then
        quote = nil
      elseif char == "\\" and quote == '"' and next:match('["\\]') then
        word = word .. next
        place = place + 1
      else
        word = word .. char
      end
    elseif char == "\\" and (next:match("%s") or (first and next:match("[\"'%%<\\]"))) then
      word, plain = word .. next, false
      place = place + 1
    elseif first and plain and char:match("[\"']") then
      quote, plain = char, false
    elseif char:match("%s") then
      finish(place)
    else
      word = word .. char
    end
    place = place + 1
  end
  if not word and open then
    word, start, plain = "", #line + 1, true
  end
  finish(#line + 1)
  return found, quote and ("the quote %s is not closed"):format(quote) or nil
end

--- Return a text as one word of a command line.
function M.quote(text)
  return (text:gsub("%s", "\\%0"):gsub("^[\"'\\]", "\\%0"))
end

return M
