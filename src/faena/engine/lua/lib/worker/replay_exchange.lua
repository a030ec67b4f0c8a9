--- Answer an exchange that arrives again.
--@include keys, job_metadata, lease_record, facts_for_worker
--@exports replay_exchange
--- The answer of a call that arrives again: only leases that still hold are handed out. It has two instants.
-- `now` is the present: from it a worker counts the wait until `next_at`, and whether and how long a job may
-- still be started. `claimed_at` is when the leases began: a job started then, not when the reply arrived.
local function replay_exchange(answer, lease, now)
  local lost, ids, next_at, gate, more = unpack(answer)
  local popped, kept, claimed_at = {}, {}, now
  local records = #ids > 0 and call('HMGET', key('leases'), unpack(ids)) or {}
  for i, id in ipairs(ids) do
    if holds_lease(records[i], lease) then
      kept[#kept + 1], claimed_at = id, claimed_in(records[i], now)   -- the same of all
      popped[#popped + 1] = id
      popped[#popped + 1] = score_in(records[i])
    end
  end
  local specs = #kept > 0 and call('HMGET', key('specs'), unpack(kept)) or {}
  return { now, next_at, gate, more, lost, popped, specs, facts_for_worker(marks_of(kept)), {}, {}, claimed_at }
end
