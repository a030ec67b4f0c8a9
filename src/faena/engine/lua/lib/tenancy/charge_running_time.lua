--- Fairness in service time: a claim costs a lane as much as a job takes on average, and when the job
-- ends the lane is charged the difference. Costs are shares of the queue's mean, so turns keep their
-- unit when a queue changes its mind.
--@include safe_read, keys, lane, tenant_override, table_names, lease_record
--@exports note_time, charge_lanes

--- Note how long a job of a lane has taken since it was claimed.
local function note_time(batch, lane, record)
  local took = batch.now - claimed_in(record, batch.now)
  local spent = batch.spent[lane] or { us = 0, jobs = 0 }
  batch.spent[lane] = spent
  spent.us, spent.jobs = spent.us + math.max(took, 1), spent.jobs + 1
end

--- The mean before these jobs, and with them.
local function learn_mean(spent)
  local us, jobs, learned = 0, 0, 200   -- as many jobs does the mean remember
  for _, one in pairs(spent) do
    us, jobs = us + one.us, jobs + one.jobs
  end
  local mean = number_in(call('HGET', key('clock'), 'mean_us'), 0)
  mean = mean > 0 and mean or us / jobs
  call('HSET', key('clock'), 'mean_us', math.max(1, mean + (us / jobs - mean) * math.min(1, jobs / learned)))
  return mean
end

--- Move the next turns of lanes by what their jobs took beyond the mean, or less.
local function charge_lanes(batch)
  local lanes, mean = names_in(batch.spent), nil
  if #lanes == 0 then
    return
  end
  mean = learn_mean(batch.spent)
  local controls, present = controls_of(lanes, batch.now), virtual_time()
  local turns, debts = call('ZMSCORE', key('ring'), unpack(lanes)), call('ZMSCORE', key('debts'), unpack(lanes))
  local ring, owed = {}, {}
  local most = 1000   -- times the mean: one endless job must not bar its tenant for days
  for i, lane in ipairs(lanes) do
    local spent = batch.spent[lane]
    local beyond = math.min(spent.us / mean, most * spent.jobs) - spent.jobs
    local turn = math.max(present, tonumber(turns[i] or debts[i] or present) + beyond / weight_of(controls[lane]))
    local list = turns[i] and ring or owed
    list[#list + 1], list[#list + 2] = turn, lane
  end
  if #ring > 0 then
    call('ZADD', key('ring'), 'XX', unpack(ring))
  end
  if #owed > 0 then
    call('ZADD', key('debts'), unpack(owed))
  end
end
