--- Every key of a queue starts with KEYS[1], the queue's prefix; the names are those of keys.py.
local function key(name)
  return KEYS[1] .. name
end

-- Lua's own `..` keeps 14 digits of a number; instants have 16.
local function whole(number)
  return string.format('%.0f', number)
end

--- Tell whoever listens, in any process, about one job. Channels are shared by all queues.
local function publish(channel, id)
  call('PUBLISH', string.match(KEYS[1], '^[^{]*') .. channel, KEYS[1] .. id)
end
