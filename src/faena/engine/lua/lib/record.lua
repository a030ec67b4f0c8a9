--- Lease records: `lease claimed_at worker score [lane=…] [chain=…]`, padded before the score.
local BEFORE_SCORE = 49   -- as long is what stands before the score, at least

--- A record begins with its lease and a space; one lease may be the beginning of another.
local function holds_lease(record, lease)
  return record and string.find(record, lease, 1, true) == 1 and string.byte(record, #lease + 1) == 32
end

--- The ready score a lease was claimed at.
local function score_in(record)
  return string.match(record, '^%S+ %S+ %S+ +(%S+)')
end

--- Give a job back to the place it was claimed from, without using an attempt.
local function put_back(batch, id, record)
  batch.ready[#batch.ready + 1] = score_in(record)
  batch.ready[#batch.ready + 1] = id
  batch.back[#batch.back + 1] = id
end

--- Remember the lane and the chain of a job whose lease ends, where it has any.
local function note_place(batch, id, record)
  local at = string.find(record, ' lane=', BEFORE_SCORE, true)
  local to = string.find(record, ' chain=', at or BEFORE_SCORE, true)
  if at then
    batch.lanes[id] = string.sub(record, at + 6, to and to - 1)
    batch.is_laned = true
  end
  if to then
    batch.chains[id] = string.sub(record, to + 7)
    batch.is_laned = true
  end
end
