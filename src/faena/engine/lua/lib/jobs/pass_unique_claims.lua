--- Unique claims of jobs that end pass to their followers.
--@include keys, event_and_stats, unique_claim, score, wake_worker, spec_line, waiting
--@exports free_follower, pass_unique_claims
--- A follower of a `last` claim may run when the job before it has ended, not before its own delay.
local function free_follower(id, at, conf, now)
  if at > now then
    call('ZADD', key('delayed'), at, id)
  else
    local spec = call('HGET', key('specs'), id)
    local lane, chain = lane_in(spec)
    local score = chain and fresh_stamp(now) or score_of(conf, now, priority_of(spec), 0)
    start_waiting({ { id = id, score = score, lane = lane, chain = chain } })
  end
  wake_worker()
  record_event('unblocked', { id })
end

--- The unique claims of live jobs that end, by finishing or by being removed.
local function pass_unique_claims(ids, marks, conf, now)
  for _, id in ipairs(ids) do
    local mark = marks[id]
    if mark and mark.u then
      local follower, at = pass_unique(id, mark)
      if follower then
        free_follower(follower, at, conf, now)
      end
    end
  end
end
