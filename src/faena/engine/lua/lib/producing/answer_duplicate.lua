--- Answer for an item whose id is known.
--@include event_and_stats, job_state, enqueue_batch, spec_line, lane
--@exports answer_duplicate
--- The id is taken: the same job again, or a conflict.
local function answer_duplicate(intake, index, id, spec, known)
  local facts, its = facts_in(spec), facts_in(known)
  local same = known == spec or without_lane(known, COMMON) == spec
    or (facts.digest ~= nil and facts.digest == its.digest)
  local is_member = same and facts.tells and facts.tells == its.tells
  judge_all(intake)
  write_pile(intake)
  answer(intake, index, is_member and 'MEMBER' or same and 'DUPLICATE' or 'CONFLICT', id, (state_of(id)) or 'removed')
  count(same and 'duplicate' or 'conflict', 1)
end
