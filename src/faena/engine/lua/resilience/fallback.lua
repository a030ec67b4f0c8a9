--- Record that a job was handed to a fallback, or that the fallback of a job or of a call has failed.
-- states   none
-- keys     events stream · stats hash
--@args     event, what, is_upstreams?
--          event fell_back | escalated | fallback_failed, of the job `what`; with is_upstreams, the fallback of a call to the
--          upstream `what` has failed
-- returns  OK
-- refuses  UNKNOWN_EVENT
--@flags allow-oom
--@include event_and_stats, upstream_event
if is_upstreams ~= '' then
  tell_upstream('upstream_fallback_failed', what)
elseif event == 'fell_back' then
  record_event('fell_back', { what })
elseif event == 'escalated' then
  record_event('escalated', { what })
elseif event == 'fallback_failed' then
  record_event('fallback_failed', { what })
else
  return 'UNKNOWN_EVENT'
end
return 'OK'
