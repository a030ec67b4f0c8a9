--- Every key of a queue starts with KEYS[1], the queue's prefix; the names are those of keys.py.
--@exports key, whole, publish
local function key(name)
  return KEYS[1] .. name
end

-- Lua's own `..` keeps 14 digits of a number; instants have 16. '%d' costs an eighth of what '%.0f' does.
local EXACT = 2 ^ 53

local function whole(number)
  number = number + 0   -- a score may be a text
  local is_whole = number % 1 == 0 and number < EXACT and number > -EXACT
  return string.format(is_whole and '%d' or '%.0f', number)
end

--- Tell all listeners, in any process, about one job. Channels are shared by all queues.
local function publish(channel, id)
  call('PUBLISH', string.match(KEYS[1], '^[^{]*') .. channel, KEYS[1] .. id)
end
