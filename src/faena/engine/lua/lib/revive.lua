--- Dead jobs are retried as new ones: the same spec, fresh attempts, linked both ways.
-- What a spec says of a delay, an id's digest or a unique claim has been; its lane and its chain count.
--@include key, state, fact, mark, score, place, shelf, tally, wake

--- The mark of a job that is made of another: of that one's mark only what concerns the job, not its attempts.
local function new_mark(id, mark, spec, why)
  local own = priority_of(spec, mark)
  local spent = (mark.x or 0) + (why.action == 'auto' and 1 or 0)
  return { p = math.min(own, why.priority), o = mark.o or id, b = id, w = mark.w, t = mark.t, d = why.redrive,
           x = spent > 0 and spent or nil }
end

--- Retry pending jobs of the desk, (id · new id) …, because of `why`: {action, reason, by, priority,
-- redrive}. Returns for each the state of the new job, or what forbids it: retried, discarded, resolved,
-- the state of a job that is not dead, unknown, taken (the new id).
local function revive(pairs_of_ids, why, conf, now)
  local answers, items, made, done = {}, {}, {}, {}
  for i = 1, #pairs_of_ids, 2 do
    local id, fresh = pairs_of_ids[i], pairs_of_ids[i + 1]
    local record = records_of({ id })[id]
    local at = #answers + 1
    if not record then
      answers[at] = state_of(id) or 'unknown'
    elseif record.s ~= 'pending' then
      answers[at] = record.s
    elseif call('HEXISTS', key('specs'), fresh) == 1 then
      answers[at] = 'taken'
    else
      local mark, spec = marks_of({ id })[id] or {}, call('HGET', key('specs'), id)
      local lane, chain = lane_in(spec)
      local fresh_mark = new_mark(id, mark, spec, why)
      local score = chain and fresh_stamp(now) or score_of(conf, now, fresh_mark.p, 0)
      call('HSET', key('specs'), fresh, spec)
      save_mark(fresh, fresh_mark)
      record.to = fresh
      record.r = { why.action, why.reason, why.by, now }
      close_record(id, record, 'retried')
      if lane then
        count_lane(lane, 1, 0)
      end
      items[#items + 1] = { id = fresh, score = score, lane = lane, chain = chain }
      made[#made + 1], done[#done + 1], answers[at] = fresh, id, 'ready'
    end
  end
  if #made > 0 then
    place(items)
    call('HINCRBY', key('clock'), 'enqueued', #made)
    arm_wake()
  end
  tell('enqueued', made)
  tell('dead_retried', done)
  return answers, made
end
