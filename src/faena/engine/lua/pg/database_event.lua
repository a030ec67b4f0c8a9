--- Record what happens to the PostgreSQL beside the broker.
-- states   none
-- keys     events stream
--@args     event, what, why?
--          event outbox_late | outbox_on_time of the database `what`, replica_late | replica_on_time of the app
--          `what`, partitions_short | archive_failed of the table `what`, or history_late | history_on_time |
--          history_gap of the shard `what`
-- returns  OK
-- refuses  UNKNOWN_EVENT
--@flags allow-oom
--@include upstream_event
local reason = why ~= '' and why or nil
if event == 'outbox_late' then
  tell_upstream('outbox_late', what, reason)
elseif event == 'outbox_on_time' then
  tell_upstream('outbox_on_time', what, reason)
elseif event == 'replica_late' then
  tell_upstream('replica_late', what, reason)
elseif event == 'replica_on_time' then
  tell_upstream('replica_on_time', what, reason)
elseif event == 'history_late' then
  tell_upstream('history_late', what, reason)
elseif event == 'history_on_time' then
  tell_upstream('history_on_time', what, reason)
elseif event == 'history_gap' then
  tell_upstream('history_gap', what, reason)
elseif event == 'partitions_short' then
  tell_upstream('partitions_short', what, reason)
elseif event == 'archive_failed' then
  tell_upstream('archive_failed', what, reason)
else
  return 'UNKNOWN_EVENT'
end
return 'OK'
