--- Report calls to upstreams that have ended, and ask for permission for the next ones, for a whole batch of jobs.
-- states   none
-- keys     upstreams, troubled, panics hashes · reserved, lots, spent, warned hashes · spenders, lot_ends sorted sets ·
--          breaker, claims, call strings · events stream
--@args     caller, turn, reports, settled, asks
--          turn is the id of the call. Packed: reports {upstream, tenant, calls, failed, slow, us not to call for, {probe,
--          1 | 0, …}} …; settled {lot, calls that have ended, tenant, task, {upstream, micro, …}} …;
--          asks {{upstream, …}, tenant, number, stem, advance, {micro each would cost at most, …}, us} …: so many jobs,
--          each of which needs all of them; their permits are stem:1, stem:2, …, of the lot named stem, whose holder is
--          taken for dead after so long; and so many more would be used soon. The number is 0 where only these are wanted
-- returns  now · {scope, state …} of breakers that have changed · {granted, is_probe 1|0, upstream, reason, ask_again_at, in advance, is_soft 1|0} … for each ask,
--          upstream, reason and ask_again_at of what refused the rest; the reason is open, probing, recovering, rate_limited, limit, tenant_limit, budget,
--          tenant_budget, total_budget, reserved, tenant_reserved or panic
-- refuses  OVERTAKEN · UNDECLARED upstream …
--@flags allow-oom
--@include now, replay, breaker, budgets, upstream_settings, upstream_gates
local reports, settled, asks = cmsgpack.unpack(reports), cmsgpack.unpack(settled), cmsgpack.unpack(asks)
local missing = read_upstreams(reports, settled, asks)
if #missing > 0 then
  return { 'UNDECLARED', unpack(missing) }
end
local scopes, gates = {}, {}
for i, report in ipairs(reports) do
  scopes[i] = add_report(report)
end
for i, ask in ipairs(asks) do
  gates[i] = add_ask(ask, now)
end
local answered, overtaken = replayed_in(read_gates('call:' .. caller, now), turn)
if answered then
  return { now, unpack(cmsgpack.unpack(answered)) }
elseif overtaken then
  return { 'OVERTAKEN' }
end

for i, report in ipairs(reports) do
  local _, _, calls, failed, slow, wait_us, probes = unpack(report)
  local breaker = breaker_of(scopes[i])
  for at = 1, #probes, 2 do
    end_probe(breaker, probes[at], probes[at + 1], now)
  end
  count_calls(breaker, calls, failed, slow, now)
  if wait_us > 0 then
    no_calls_until(breaker, now + wait_us)
  end
end
read_money(settled, now)
for _, lot in ipairs(settled) do
  settle_lot(unpack(lot))
end
local answers = { context.turned }
for i, ask in ipairs(asks) do
  answers[i + 1] = admit_jobs(ask, gates[i], now)
end
save_gates(now)
remember(caller, turn, cmsgpack.pack(answers), nil, write_last)
return { now, unpack(answers) }
