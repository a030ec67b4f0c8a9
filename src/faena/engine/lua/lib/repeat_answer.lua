--- Answer an exchange that arrives again.
--@include key, mark, record, facts_of
--@exports repeat_answer
--- The answer of a call that arrives again: only leases that still hold are handed out.
local function repeat_answer(answer, lease, now)
  local lost, ids, next_at, gate, more = unpack(answer)
  local popped, kept = {}, {}
  local records = #ids > 0 and call('HMGET', key('leases'), unpack(ids)) or {}
  for i, id in ipairs(ids) do
    if holds_lease(records[i], lease) then
      kept[#kept + 1] = id
      popped[#popped + 1] = id
      popped[#popped + 1] = score_in(records[i])
    end
  end
  local specs = #kept > 0 and call('HMGET', key('specs'), unpack(kept)) or {}
  return { now, next_at, gate, more, lost, popped, specs, facts_of(marks_of(kept)) }
end
