--- The arguments of a script that is not taken back when it fails: judged before its first write.
--@include safe_read
--@exports LATEST, check, size_of, instant_of, is_word
local LATEST = 2 ^ 53   -- what a number holds exactly

--- Fail unless `is_right`, with nothing written.
local function check(is_right, what)
  if not is_right then
    error({ err = 'BAD_ARGUMENT ' .. what .. ' must be right' })
  end
end

local function number_of(text, most, what)
  local number = number_in(text)
  check(number and number >= 0 and number <= most and number % 1 == 0, what)
  return number
end

--- An argument that says how many, and one that is a time in microseconds.
local function size_of(text, what)
  return number_of(text, 10000, what)
end

local function instant_of(text, what)
  return number_of(text, LATEST, what)
end

--- Whether it is a text that may stand between spaces.
local function is_word(text)
  return text and string.find(text, '^%S+$') ~= nil
end
