--- How much of each budget is used now.
-- states   none
-- keys     upstreams, reserved, lots, spent hashes · lot_ends, spenders sorted sets
--@args     tenant?
--          whose, of budgets that each tenant has; '' for the tenant that has spent most
-- returns  packed: now · upstream … that are declared · whether there are totals · {upstream or '', currency, budget, period,
--          tenant, spent, reserved, what a call is estimated to cost} …
--@flags no-writes
--@include now, upstream_settings, budgets_spent, spending
local names, today = declared_upstreams(), periods_of(now)
local rows = budgets_spent(names, today.d.name, today.m.name, tenant, now)
return cmsgpack.pack({ now, names, next(context.totals) ~= nil, rows })
