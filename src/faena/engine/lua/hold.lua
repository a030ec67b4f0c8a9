--- Hold a queue for a reason, or release a hold.
-- states   none
-- keys     holds hash · wake zset
-- args     now · reason · duration_us ('' until released, 'release' to end it) · by
-- returns  1 when something changed, else 0
--@flags allow-oom
--@include now, hold, wake, tally
local now, reason, duration, by = now_us(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local was_held = is_held(reason, now)
if duration == 'release' then
  call('HDEL', key('holds'), reason)
  if was_held then
    arm_wake()
  end
  return was_held and 1 or 0
end
hold(reason, duration == '' and 0 or now + tonumber(duration), by, now)
return was_held and 0 or 1
