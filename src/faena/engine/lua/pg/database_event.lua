--- Record what happens to the PostgreSQL beside the broker.
-- states   none
-- keys     events stream
--@args     event, what, why?
--          event outbox_late | outbox_on_time of the database `what`, or partitions_short of the table `what`
-- returns  OK
-- refuses  UNKNOWN_EVENT
--@flags allow-oom
--@include upstream_event
local reason = why ~= '' and why or nil
if event == 'outbox_late' then
  tell_upstream('outbox_late', what, reason)
elseif event == 'outbox_on_time' then
  tell_upstream('outbox_on_time', what, reason)
elseif event == 'partitions_short' then
  tell_upstream('partitions_short', what, reason)
else
  return 'UNKNOWN_EVENT'
end
return 'OK'
