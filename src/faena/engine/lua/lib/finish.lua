--- Bring jobs to a finished state: completed, dead or cancelled.
-- Their specs and marks stay while retention keeps them; unique claims and waiters are served now.
--@include key, mark, unique, forget, bytes, wake, tally, score, waiter
--- A follower of a `last` claim may run when the job before it has ended, not before its own delay.
local function free_follower(id, at, conf, now)
  if at > now then
    call('ZADD', key('delayed'), at, id)
  else
    local spec = call('HGET', key('specs'), id)
    call('ZADD', key('ready'), score_of(conf, now, priority_of(spec), 0), id)
  end
  arm_wake()
  tell('unblocked', { id })
end

--- The unique claims of live jobs that end, by finishing or by being removed.
local function pass_claims(ids, marks, conf, now)
  for _, id in ipairs(next(marks) and ids or {}) do
    local mark = marks[id]
    if mark and mark.u then
      local follower, at = pass_unique(id, mark)
      if follower then
        free_follower(follower, at, conf, now)
      end
    end
  end
end

local function keeps(state, conf)
  return conf[state .. '_count'] ~= 0 and conf[state .. '_us'] ~= 0
end

--- `ids` have left their former state already; `marks` are theirs.
local function finish(state, ids, marks, conf, now)
  if #ids == 0 then
    return
  end
  pass_claims(ids, marks, conf, now)
  if keeps(state, conf) then
    local scored, at = {}, whole(now)
    for i = 1, #ids do
      scored[2 * i - 1], scored[2 * i] = at, ids[i]
    end
    call('ZADD', key(state), unpack(scored))
    weigh(state, ids, 1, conf)
    tell_waiters(ids)
  else
    forget(ids)
  end
  tell(state, ids)
end
