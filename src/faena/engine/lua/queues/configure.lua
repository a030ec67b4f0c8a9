--- Declare a queue's settings from code, or edit them at run time.
-- states   none
-- keys     conf, clock hashes · parked, aside, wake zsets · events stream
--@args     mode, by?, name value...
--          mode declare|edit|reset; an empty value removes the setting
-- returns  the whole conf as name, value …; of a declaration also `differed` and the names that others had
--          declared otherwise, where there are any
-- refuses  INVALID name · CONTRADICTS name value name value (an edit that would leave the first bound
--          not below the second); nothing is changed
-- A declaration leaves alone what was edited at run time; `reset` makes names obey code again. Where
-- a shard stands among others comes with an epoch, and what comes with an older one is not taken.
-- An edit changes nothing in a shard that was retired.
-- `unserved` is said by a program that may not have the queue's handlers, so not its hooks and costs either.
-- It counts where nothing was declared before, until a program that claims jobs has declared the queue.
--@flags allow-oom
--@arrivals
--@include now, wake_worker, valid_settings, retired_shard, event_and_stats, arrivals_stream, keys
local edited, changed, differed = {}, {}, {}
local BOUNDS = { tenant_limits = true, tenant_costs = true, tenant_max_running = true }
local STANDING = { epoch = true, shards = true, shard = true }

--- A bound on bytes counts from the moment it is set: see retained_bytes.lua.
local function start_counting(state, value)
  call('HDEL', key('clock'), state .. '_bytes', state .. '_since')
  if value ~= '' then
    call('HSET', key('clock'), state .. '_since', now + 1)
  end
end

--- Lanes, or keys, that wait for a bound which is another now are looked at by the next exchanges.
local function look_at(set)
  if call('ZUNIONSTORE', key(set), 1, key(set), 'WEIGHTS', 0) > 0 then
    wake_worker()
  end
end

local function write(name, value)
  if BOUNDS[name] and value ~= (call('HGET', key('conf'), name) or '') then
    look_at('parked')
  elseif name == 'key_limits' and value ~= (call('HGET', key('conf'), name) or '') then
    look_at('aside')
  end
  local state = string.match(name, '^(%l+)_bytes$')
  if state and (value == '') ~= (call('HEXISTS', key('conf'), name) == 0) then
    start_counting(state, value)
  end
  if value == '' then
    call('HDEL', key('conf'), name)
  else
    call('HSET', key('conf'), name, value)
  end
end

--- All settings, after their digest is written: see queue_settings.lua.
local function sealed()
  local conf, lines = call('HGETALL', key('conf')), {}
  for i = 1, #conf, 2 do
    lines[#lines + 1] = conf[i] .. '=' .. conf[i + 1]
  end
  table.sort(lines)
  call('HSET', key('clock'), 'digest', redis.sha1hex(table.concat(lines, '\n')))
  return conf
end

local refusal = refused_settings(mode, first_name)
if refusal then
  return refusal
elseif mode == 'edit' and is_retired() then
  return call('HGETALL', key('conf'))
end
for name in string.gmatch(call('HGET', key('conf'), 'edited') or '', '%S+') do
  edited[name] = true
end
local epoch = nil
for i = first_name, #ARGV, 2 do
  epoch = ARGV[i] == 'epoch' and tonumber(ARGV[i + 1]) or epoch
end
local is_declared, was_retired = call('HEXISTS', key('conf'), 'version') == 1, is_retired()
local OF_ALL = { version = true, unserved = true, epoch = true, shards = true, shard = true }

--- Whether a declaration changes what another program, or this one's earlier code, has declared.
local function differs(name, value)
  return mode == 'declare' and is_declared and not OF_ALL[name] and not string.find(name, ':', 1, true)
    and (call('HGET', key('conf'), name) or '') ~= value
end

local is_behind = (epoch or -1) < tonumber(call('HGET', key('conf'), 'epoch') or 0)
for i = first_name, #ARGV, 2 do
  local name = ARGV[i]
  if mode == 'reset' then
    changed[#changed + 1] = edited[name] and name
    edited[name] = nil
  elseif not (is_behind and STANDING[name]) and not (is_declared and name == 'unserved' and ARGV[i + 1] ~= '')
    and (mode == 'edit' or not edited[name]) then
    if mode == 'edit' and not (edited[name] and (call('HGET', key('conf'), name) or '') == ARGV[i + 1]) then
      changed[#changed + 1] = name
    end
    differed[#differed + 1] = differs(name, ARGV[i + 1]) and name or nil
    write(name, ARGV[i + 1])
    edited[name] = mode == 'edit' or nil
  end
end

local names = {}
for name in pairs(edited) do
  names[#names + 1] = name
end
table.sort(names)
call('HSET', key('conf'), 'edited', table.concat(names, ' '))
if not is_behind then
  call('PERSIST', key('conf'))
  call('PERSIST', key('clock'))   -- a shard that was retired is there again: see retire.lua
end
if not (is_behind and was_retired) then   -- what an obliterated queue of this name has left
  call('PERSIST', key('history'))
  call('PERSIST', key('history_stats'))
end
if #changed > 0 and is_first_shard() then
  record_action(mode == 'edit' and 'configured' or 'reset', table.concat(changed, ' '))
  context.by = by
end
close_arrivals()
local conf = sealed()
if #differed > 0 then
  conf[#conf + 1], conf[#conf + 2] = 'differed', table.concat(differed, ' ')
end
return conf
