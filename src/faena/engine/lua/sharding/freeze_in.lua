--- Lanes will come to this shard: what was decided for them comes first, and nothing of them is served
-- here until `thaw`.
-- states   none
-- keys     moves, tenants, learned hashes · ring, parked, debts zsets · claims strings
--@args     epoch, stamp, lane snapshot...
--          no job that comes has a later stamp; a snapshot is packed, or ''
-- returns  OK
-- refuses  STALE (the change is published)
--@flags allow-oom
--@arrivals
--@include freeze_lane, keys
if is_sealed(epoch) then
  return 'STALE'
end

local function unload(lane, snapshot)
  if snapshot[1] ~= '' then
    call('HSET', key('tenants'), lane, snapshot[1])
  end
  for i = 2, #snapshot, 4 do
    local window, claims, ttl, learned = unpack(snapshot, i, i + 3)
    if claims ~= '' and ttl > 0 then
      call('SET', key(window), claims, 'PX', ttl)
    end
    if learned ~= '' then
      call('HSET', key('learned'), window, learned)
    end
  end
end

for i = first_lane, #ARGV, 2 do
  freeze_lane(ARGV[i], 'in ' .. epoch)
  if ARGV[i + 1] ~= '' then
    unload(ARGV[i], cmsgpack.unpack(ARGV[i + 1]))
  end
end
if tonumber(stamp) > tonumber(call('HGET', key('clock'), 'stamp') or 0) then
  call('HSET', key('clock'), 'stamp', stamp)
end
return 'OK'
