--- Cancel jobs. A waiting job is cancelled now; a running one when its worker has stopped it.
-- states   cancel    ready | delayed | blocked -> cancelled : called off; a running job's worker is told
--          unblock   blocked -> ready : what it waited for is over
--          prune     cancelled -> none : none are kept
-- keys     ready, delayed, blocked, cancelled zsets · marks hash
--@args     by?, id...
-- returns  for each: cancelled | asked | the finished state it is in | unknown
-- refuses  UNCONFIGURED
--@flags allow-oom
--@arrivals
--@include now, queue_settings, job_state, event_and_stats, job_metadata, finish, retention, waiting, keys
--@include history_record
local conf = conf_now()
if not conf.version then
  return { 'UNCONFIGURED' }
end
context.by = by
local answers, cancelled, asked, gone, places = {}, {}, {}, {}, {}
for i = first_id, #ARGV do
  local id = ARGV[i]
  local state, score = state_of(id)
  state = gone[id] and 'cancelled' or state
  if is_waiting(state) then
    call('ZREM', key(state), id)
    leave_waiting({ id }, state)
    cancelled[#cancelled + 1], gone[id], places[id] = id, true, score_as_lease(score)
    answers[#answers + 1] = 'cancelled'
  elseif state == 'running' then
    local mark = marks_of({ id })[id] or {}
    if not mark.c then
      asked[#asked + 1] = id
    end
    mark.c = 1
    save_mark(id, mark)
    publish('stop', id)
    answers[#answers + 1] = 'asked'
  else
    answers[#answers + 1] = state or 'unknown'
  end
end
finish('cancelled', cancelled, marks_of(cancelled), conf, now, nil, nil, places)
prune('cancelled', conf, now, #ARGV)
if #asked > 0 then
  record_action('stopping', table.concat(asked, ' '))
end
return answers
