--- What a worker must know of the marked ones: id, attempts, losses, changed priority (0: none),
-- the first job of its line of retries ('': itself), when it expires (0: never), snoozes, when it was
-- taken in (0: as its score says).
-- A claim ends a `waiting` unique claim.
--@include unique_claim
--@exports facts_for_worker
local function facts_for_worker(marks)
  local facts = {}
  for id, mark in pairs(marks) do
    if mark.m == 'waiting' then
      release_unique(id, mark)
    end
    facts[#facts + 1] = id
    facts[#facts + 1] = mark.a or 0
    facts[#facts + 1] = mark.l or 0
    facts[#facts + 1] = mark.p or 0
    facts[#facts + 1] = mark.o or ''
    facts[#facts + 1] = mark.e or 0
    facts[#facts + 1] = mark.k or 0
    facts[#facts + 1] = mark.q or 0
  end
  return facts
end
