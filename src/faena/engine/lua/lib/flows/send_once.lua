--- A job that a flow, a group or the outbox of a database sends: it was accepted long ago, and must come once.
--   by=<instant>   refused after it: a sender so late was stopped for long, and others may have sent
--                  it meanwhile; for longer than that `sent:<id>` tells of one that has come and gone
--@include keys, enqueue_batch, event_and_stats, safe_read
--@exports is_refused_send, may_be_refused
--- Whether back-pressure applies. Jobs of flows and groups are part of what was accepted; an outbox can wait.
local function may_be_refused(facts)
  return not facts.by or string.sub(facts.tells or '', 1, 1) == 'o'
end

local function is_refused_send(intake, index, id, facts)
  local before = call('GET', key('sent:' .. id))
  if before then
    local digest = string.match(before, '^digest=(.*)$')
    local is_other = digest and facts.digest and digest ~= facts.digest
    answer(intake, index, is_other and 'CONFLICT' or 'DUPLICATE', id, 'removed')
    count(is_other and 'conflict' or 'duplicate', 1)
    return true
  elseif intake.now > number_in(facts.by, 0) then
    answer(intake, index, 'LATE', intake.now)
    return true
  end
  return false
end
