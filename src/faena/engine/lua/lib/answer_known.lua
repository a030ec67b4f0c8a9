--- Answer for an item whose id is known.
--@include key, tally, mark, state, intake
--- The id is taken: the same job again, or a conflict.
local function answer_known(intake, index, id, spec, known)
  local digest = facts_in(spec).digest
  local same = known == spec or (digest ~= nil and digest == facts_in(known).digest)
  write_pile(intake)
  answer(intake, index, same and 'DUPLICATE' or 'CONFLICT', id, (state_of(id)) or 'removed')
  count(same and 'duplicate' or 'conflict', 1)
end
