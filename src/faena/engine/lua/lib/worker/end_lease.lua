--- A lease ends: what is noted of its job, for all endings alike.
--@include lease_record, charge_running_time
--@exports put_back, note_place, note_completed
--- Give a job back to the place it was claimed from, or one that is `moved` behind it, without using an attempt.
local function put_back(batch, id, record, moved)
  batch.ready[#batch.ready + 1] = score_in(record) + (moved or 0)
  batch.ready[#batch.ready + 1] = id
  batch.back[#batch.back + 1] = id
end

--- Remember the lane and the chain of a job whose lease ends, where it has any.
local function note_place(batch, id, record)
  local lane, chain = place_in(record)
  if lane or chain then
    batch.lanes[id], batch.chains[id], batch.is_laned = lane, chain, true
  end
  if lane and batch.spent then
    note_time(batch, lane, record)
  end
end

--- Count completed jobs out of their lanes, and keep those that are in a chain. Jobs of a lane are
-- claimed together and mostly end so: their records end alike, which is found sooner than a lane.
local function note_completed(batch, ids, records)
  local ended, chained, ending, lane, chain = batch.ended, batch.chained, nil, nil, nil
  for i = 1, #ids do
    local record = records[i]
    if not (ending and string.find(record, ending, #record - #ending + 1, true)) then
      lane, chain, ending = place_in(record)
      if chain then
        chained[#chained + 1] = { id = ids[i], lane = lane, chain = chain }
      end
      batch.is_laned = batch.is_laned or lane or chain
    end
    if lane then
      ended[lane] = (ended[lane] or 0) + 1
      if batch.spent then
        note_time(batch, lane, record)
      end
    end
  end
end
