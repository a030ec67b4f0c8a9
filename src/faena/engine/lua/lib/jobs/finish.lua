--- Bring jobs to a finished state: completed, dead or cancelled.
-- Their specs and marks stay while retention keeps them; unique claims and waiters are served now.
--@include keys, event_and_stats, notify_waiters, delete_jobs, pass_unique_claims, retained_bytes, report_job_end
--@include history_record
--@exports keeps, finish
local function keeps(state, conf)
  return conf[state .. '_count'] ~= 0 and conf[state .. '_us'] ~= 0
end

--- `ids` have left their former state already; `marks` are theirs, `results` as id, result …, and `kept`
-- the bytes of those; `leases` are the records of those that ran, by id, where the queue has a history.
local function finish(state, ids, marks, conf, now, results, kept, leases)
  if #ids == 0 then
    return
  end
  if conf['history:room'] then
    record_history(state, ids, marks, conf, now, leases, results)
  end
  if next(marks) then
    pass_unique_claims(ids, marks, conf, now)
    report_job_end(state, ids, marks, results)
  end
  if keeps(state, conf) then
    local scored, at = {}, whole(now)
    for i = 1, #ids do
      scored[2 * i - 1], scored[2 * i] = at, ids[i]
    end
    call('ZADD', key(state), unpack(scored))
    if conf[state .. '_bytes'] then
      add_bytes(state, ids, kept or 0, now)
    end
    notify_waiters(ids)
  else
    delete_jobs(ids)
  end
  record_event(state, ids)
end
