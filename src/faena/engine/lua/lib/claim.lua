--- Take ready jobs in order of score and lease them to a worker.
-- The lease id is the call's id: a job is claimed at most once in a call, so (job, lease) is unique.
--@include key, tally, mark
--@lazy facts_of
-- Small hashes with values of up to 64 bytes are listpacks, where each access is O(n): records are
-- made longer than that.
local function lease_all(popped, lease, worker, now, deadline)
  local shared = string.format('%-49s ', lease .. ' ' .. whole(now) .. ' ' .. worker)
  local ids, records, running, until_at = {}, {}, {}, whole(deadline)
  for i = 1, #popped, 2 do
    local id = popped[i]
    ids[(i + 1) / 2] = id
    records[i], records[i + 1] = id, shared .. popped[i + 1]
    running[i], running[i + 1] = until_at, id
  end
  call('HSET', key('leases'), unpack(records))
  call('ZADD', key('running'), unpack(running))
  return ids
end

--- Returns {id, score, …}, the specs in the same order, and the facts of the marked ones.
local function claim(number, lease, worker, now, lease_us)
  local popped = number > 0 and call('ZPOPMIN', key('ready'), number) or {}
  if #popped == 0 then
    return {}, {}, {}, {}
  end
  local ids = lease_all(popped, lease, worker, now, now + lease_us)
  tell('claimed', ids)
  local marks = marks_of(ids)
  return popped, call('HMGET', key('specs'), unpack(ids)), next(marks) and facts_of(marks) or {}, ids
end
