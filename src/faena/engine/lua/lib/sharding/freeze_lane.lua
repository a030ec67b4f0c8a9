--- Lanes on their way from one shard of a queue to another.
--   moves     lane -> "out <epoch>" where it leaves, "in <epoch>" where it arrives: it is served at
--             neither until all its jobs have come
--   transfer_out    shard -> packed number and jobs that were sent there and are not known to have arrived
--   transfer_in     shard -> the number of the last batch that came from there
--   late      job -> its lane, of those that must leave and could not, because they ran
-- `moving` in the clock counts the lanes in `moves`; `sealed` is the epoch from which on no lane may
-- begin to move for an older one: a program that comes back late must not start a move again.
--@include keys, lane, shares_by_minute, clock_fields
--@exports is_sealed, freeze_lane, thaw_lane
local function is_sealed(epoch)
  local known = call('HMGET', key('conf'), 'epoch', 'retired')
  return tonumber(call('HGET', key('clock'), 'sealed') or 0) >= tonumber(epoch)
    or tonumber(known[1] or 0) > tonumber(epoch) or tonumber(known[2] or 0) >= tonumber(epoch)
end

--- Serve a lane no more.
local function freeze_lane(lane, why)
  if call('HSET', key('moves'), lane, why) == 1 then
    call('HINCRBY', key('clock'), 'moving', 1)
    context.clock_fields = false
  end
  if call('EXISTS', key('lane:' .. lane)) == 1 then
    quit_ring(lane)
    call('ZADD', key('parked'), FULL, lane)
  end
end

--- Serve it again, if it is barred for just this reason; tells whether it was.
local function thaw_lane(lane, why)
  if call('HGET', key('moves'), lane) ~= why then
    return false
  end
  call('HDEL', key('moves'), lane)
  call('HINCRBY', key('clock'), 'moving', -1)
  context.clock_fields = false
  if call('ZREM', key('parked'), lane) == 1 then
    context.throttles[lane] = 'freed'   -- a hold that came meanwhile is looked at with the next claim
    enter_ring({ lane })
  end
  return true
end
