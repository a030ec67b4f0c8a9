--- Record that a job was handed to a fallback, or that the fallback of a job or of a call has failed.
-- states   none
-- keys     leases, marks hashes · events stream · stats hash
--@args     event, what, is_upstreams?, lease?, used?
--          event fell_back | escalated | fallback_failed, of the job `what`, and under its lease what was used: the name,
--          and of a job that it was handed over to the id; with is_upstreams, the fallback of a call to the upstream `what`
--          has failed
-- returns  OK
-- refuses  UNKNOWN_EVENT
--@flags allow-oom
--@include keys, job_metadata, lease_record, event_and_stats, upstream_event
local function keep_used()
  if used ~= '' and holds_lease(call('HGET', key('leases'), what), lease) then
    local mark = marks_of({ what })[what] or {}
    mark.f = used
    save_mark(what, mark)
  end
end

if is_upstreams ~= '' then
  tell_upstream('upstream_fallback_failed', what)
elseif event == 'fell_back' then
  keep_used()
  record_event('fell_back', { what })
elseif event == 'escalated' then
  keep_used()
  record_event('escalated', { what })
elseif event == 'fallback_failed' then
  record_event('fallback_failed', { what })
else
  return 'UNKNOWN_EVENT'
end
return 'OK'
