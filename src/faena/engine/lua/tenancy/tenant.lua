--- Decide something for a single tenant, or read what was decided.
-- states   none
-- keys     tenants, lanes, throttled, moves, specs hashes · parked, ring, lane: zsets · shares hashes · wake zset ·
--          events stream · windows
--@args     lane, epoch?, by?, duration_us?, name value...
--          epoch of the shards, '' for the first; duration_us '' for good; an empty value removes; none: only read.
--          Names: limits · max_running · weight · size · held_until · held_for · reason
-- returns  the lane's override as name, value … · its live jobs · those that run · when it is looked
--          at again ('' unless it is parked) · the gates in front of its ready jobs, as explain.lua tells them
-- refuses  MOVED (the shards have changed since that epoch, or a change of a lane that leaves this shard:
--          what is decided for it has gone already)
-- Settings end by themselves after the duration, and every change of one gives them all a new end; a
-- hold has its own: `held_until` 0 is until released, `held_for` counts from now.
--@flags allow-oom
--@arrivals
--@include now, queue_settings, lane, tenant_override, wake_worker, event_and_stats, explain_gates, arrivals_stream
--@include keys
if (conf_now().epoch or 0) > (tonumber(epoch) or 0) then
  return { 'MOVED' }
end
local control = controls_of({ lane }, now)[lane] or {}

local function change(name, value)
  local is_text = name == 'limits' or name == 'reason'
  local read = value ~= '' and (is_text and value or tonumber(value)) or nil
  if name == 'held_for' then
    control.held_until = now + read
  else
    control[name] = read
  end
  if SETTINGS[name] then
    control.ends_at = duration_us ~= '' and now + tonumber(duration_us) or nil
  end
end

local function write()
  for i = first_name, #ARGV, 2 do
    change(ARGV[i], ARGV[i + 1])
  end
  control.by, control.at = by, now
  control.ends_at = has_settings(control) and control.ends_at or nil
  if counts(control, now) then
    save_control(lane, control)
  else
    call('HDEL', key('tenants'), lane)
    control = {}
  end
  if call('ZSCORE', key('parked'), lane) then
    unpark({ lane })
  end
  wake_worker()
  close_arrivals()   -- its size may be bounded now
  record_action('tenant_changed', lane)
  context.by = by
end

if #ARGV >= first_name then
  if string.match(call('HGET', key('moves'), lane) or '', '^out') then
    return { 'MOVED' }
  end
  write()
end
local fields, count = {}, tonumber(call('HGET', key('lanes'), lane) or 0)
for name, value in pairs(control) do
  if name ~= 'z' then
    fields[#fields + 1] = name
    fields[#fields + 1] = type(value) == 'number' and string.format('%.17g', value) or value
  end
end
if count > 0 then
  explain_tenant(lane, '', conf_now(), now, { sure = 0, likely = 0, set = 'lane:' .. lane })
end
return { fields, math.floor(count / LIVE), count % LIVE, call('ZSCORE', key('parked'), lane) or '', context.gates }
