--- Dead jobs are retried as new ones: the same spec, fresh attempts, linked both ways.
-- What a spec says of a delay, an id's digest or a unique claim has been; its lane and its chain count.
--@include keys, job_state, spec_line, job_metadata, score, waiting, dead_index, event_and_stats, wake_worker
--@include expires_from, lane
--@exports retry_dead_as_new

--- The mark of a job that is made of another: of that one's mark only what concerns the job, not its attempts.
local function new_mark(id, mark, spec, why)
  local own = priority_of(spec, mark)
  local spent = (mark.x or 0) + (why.action == 'auto' and 1 or 0)
  return { p = math.min(own, why.priority), o = mark.o or id, b = id, w = mark.w, t = mark.t, d = why.redrive,
           x = spent > 0 and spent or nil,
           e = why.action == 'auto' and mark.e or nil }   -- who retries it by hand overrides its expiry
end

--- What forbids that a job is retried under a new id, or nil.
local function forbids(id, record, is_taken, spec)
  if not record or not spec then
    return not spec and 'unknown' or state_of(id) or 'unknown'
  elseif record.s ~= 'pending' then
    return record.s
  end
  return is_taken and 'taken' or nil
end

--- Write new jobs of {fresh, spec, mark} and put them into their places.
local function bring_in(new, conf, now)
  local specs, fresh, marks, items = {}, {}, {}, {}
  for i, job in ipairs(new) do
    local lane, chain = lane_in(job.spec)
    local score = chain and fresh_stamp(now) or score_of(conf, now, job.mark.p, 0)
    specs[2 * i - 1], specs[2 * i] = job.fresh, job.spec
    fresh[i], marks[job.fresh] = job.fresh, job.mark
    if job.mark.e then
      note_expiry(job.mark.e)
    end
    items[i] = { id = job.fresh, score = score, lane = lane, chain = chain }
    if lane then
      count_lane(lane, 1, 0)
    end
  end
  call('HSET', key('specs'), unpack(specs))
  save_marks(fresh, marks)
  start_waiting(items)
  call('HINCRBY', key('clock'), 'enqueued', #new)
  wake_worker()
  record_event('enqueued', fresh)
end

--- Retry pending jobs of the desk, each `ids[i]` as `fresh[i]`, because of `why`: {action, reason, by,
-- priority, redrive}; `records` are theirs. Returns for each OK, or what forbids it: retried,
-- discarded, resolved, the state of a job that is not dead, unknown, taken (the new id).
local function retry_dead_as_new(ids, fresh, records, why, conf, now)
  local answers, new, done, silent = {}, {}, {}, {}
  if #ids == 0 then
    return answers, new
  end
  local specs, marks = call('HMGET', key('specs'), unpack(ids)), marks_of(ids)
  local taken = call('HMGET', key('specs'), unpack(fresh))
  for i, id in ipairs(ids) do
    local record = records[id]
    answers[i] = forbids(id, record, taken[i], specs[i]) or 'OK'
    if answers[i] == 'OK' then
      -- an id that is named twice is refused the second time
      record.s, record.to, record.r = 'retried', fresh[i], { why.action, why.reason, why.by, now }
      new[#new + 1] = { fresh = fresh[i], spec = specs[i], mark = new_mark(id, marks[id] or {}, specs[i], why) }
      done[#done + 1] = id
      if marks[id] and marks[id].w then   -- its flow or group hears of the new one from now on
        marks[id].w, marks[id].t = nil, nil
        silent[#silent + 1] = id
      end
    end
  end
  save_marks(silent, marks)
  if #new > 0 then
    bring_in(new, conf, now)
    close_records(done, records, 'retried')
    record_event('retried_as_new', done)
  end
  return answers, new
end
