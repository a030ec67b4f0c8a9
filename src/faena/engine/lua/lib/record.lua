--- Lease records: `lease claimed_at worker score`, padded.
--- A record begins with its lease and a space; one lease may be the beginning of another.
local function holds_lease(record, lease)
  return record and string.find(record, lease, 1, true) == 1 and string.byte(record, #lease + 1) == 32
end

--- The ready score a lease was claimed at, which is its last word.
local function score_in(record)
  return string.match(record, '(%S+)$')
end

--- Give a job back to the place it was claimed from, without using an attempt.
local function put_back(batch, id, record)
  batch.ready[#batch.ready + 1] = score_in(record)
  batch.ready[#batch.ready + 1] = id
end
