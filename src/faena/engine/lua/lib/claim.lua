--- Take ready jobs in order of score and lease them to a worker.
-- The lease id is the call's id: a job is claimed at most once in a call, so (job, lease) is unique.
--@include key, tally, mark, facts_of
local CLAIM_BYTES = 8 * 1024 * 1024   -- of specs in one claim, so that a slow line can carry it
local READ = 250                      -- specs read at once, for the same bound on the server's side

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

--- The specs of the first jobs, as many as fit into a claim; of one job at least.
local function specs_of(popped)
  local specs, number, bytes = {}, 0, 0
  for first = 1, #popped, 2 * READ do
    local ids = {}
    for i = first, math.min(first + 2 * READ, #popped) - 1, 2 do
      ids[(i - first) / 2 + 1] = popped[i]
    end
    for _, spec in ipairs(call('HMGET', key('specs'), unpack(ids))) do
      bytes = bytes + #(spec or '')
      if bytes > CLAIM_BYTES and number > 0 then
        return specs
      end
      number = number + 1
      specs[number] = spec
    end
  end
  return specs
end

--- Give back all but the first `kept` jobs, which were popped and not leased.
local function cut(popped, kept)
  local rest = {}
  for i = #popped, 2 * kept + 1, -1 do
    rest[#rest + 1] = table.remove(popped)
  end
  call('ZADD', key('ready'), unpack(rest))
end

--- Returns {id, score, …}, the specs in the same order, the facts of the marked ones, the ids, and
-- whether the claim would have been too large.
local function claim(number, lease, worker, now, lease_us)
  local popped = number > 0 and call('ZPOPMIN', key('ready'), number) or {}
  if #popped == 0 then
    return {}, {}, {}, {}, false
  end
  local specs = specs_of(popped)
  local is_cut = 2 * #specs < #popped
  if is_cut then
    cut(popped, #specs)
  end
  local ids = lease_all(popped, lease, worker, now, now + lease_us)
  tell('claimed', ids)
  local marks = marks_of(ids)
  return popped, specs, next(marks) and facts_of(marks) or {}, ids, is_cut
end
