--- Jobs that may come before another one though they are not in line before it.
--@include safe_read, keys, explain_gates
--@exports others_of

--- Jobs that are due before the gates of this one open, and those that are ready while it is delayed; not itself, nor the
-- one that it comes behind, which is due then.
local function others_of(now, state, score, leader_due)
  local at, gates = math.max(now, context.likely_at), context.gates
  for i = 3, #gates, 3 do
    at = math.max(at, number_in(gates[i], 0))
  end
  local due = call('ZCOUNT', key('delayed'), '-inf', at)
  if state ~= 'delayed' then
    return due - (leader_due and number_in(leader_due, 0) <= at and 1 or 0)
  end
  return call('ZCARD', key('ready')) + due - (number_in(score, 0) <= at and 1 or 0)
end
