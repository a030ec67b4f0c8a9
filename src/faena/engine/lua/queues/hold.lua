--- Hold a queue for a reason, or release a hold.
-- states   none
-- keys     holds hash · wake zset · events stream
--@args     reason, duration?, by?, stays?
--          duration in us, '' until released, 'release' to end it; stays 1 where a hold of this reason that lasts
--          longer does
-- returns  1 when something changed, else 0; a shard that was retired keeps no hold
--@flags allow-oom
--@arrivals
--@include now, retired_shard, queue_holds, wake_worker, event_and_stats, keys
context.by = by
local was_held = is_held(reason, now)

if duration == 'release' then
  call('HDEL', key('holds'), reason)
  if was_held then
    wake_worker()
    if is_first_shard() then
      record_action('resumed', reason)
    end
  end
  return was_held and 1 or 0
end
if is_retired() then
  return 0
end
local until_at = duration == '' and 0 or now + tonumber(duration)
if stays == '1' and until_at > 0 then
  extend_hold(reason, until_at, now)
else
  hold(reason, until_at, by, now)
  if not was_held and is_first_shard() then
    record_action('paused', reason)
  end
end
return was_held and 0 or 1
