--- A lease ends: what is noted of its job, for all endings alike.
--@include record, charge
local BEFORE_SCORE = 49   -- as long is what stands before the score of a record, at least

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
    local lane = string.sub(record, at + 6, to and to - 1)
    batch.lanes[id], batch.is_laned = lane, true
    if batch.spent then
      note_time(batch, lane, record)
    end
  end
  if to then
    batch.chains[id] = string.sub(record, to + 7)
    batch.is_laned = true
  end
end
