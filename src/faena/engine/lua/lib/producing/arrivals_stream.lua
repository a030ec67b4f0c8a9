--- The stream `arrivals`, by which single jobs come in without a script: to append one costs a producer a tenth of
-- what a script does. It is open while it exists, and that is all a producer needs to know: XADD with NOMKSTREAM
-- leaves the job, or says that there is no stream. Scripts take in what was left before they
-- do anything else, so the result is the same as with a script; see arrive.lua.
-- It is open only if the queue has no bounds on waiting jobs, no settings of tenants, and no lane has ever moved. A
-- producer that does not know of a bound, or of new shards, finds it closed.
--@include keys
--@exports open_arrivals, close_arrivals
local function open_arrivals(conf)
  if not (conf.soft or conf.hard or conf.tenant_soft or conf.tenant_hard or conf.epoch)
    and call('EXISTS', key('arrivals'), key('tenants')) == 0 then
    call('XADD', key('arrivals'), '*', 'open', '')
    call('XTRIM', key('arrivals'), 'MAXLEN', 0)
  end
end

--- What was left there has been taken in by now; or must wait for settings, of a queue that has lost them.
local function close_arrivals()
  if call('XLEN', key('arrivals')) == 0 then
    call('UNLINK', key('arrivals'))
  end
end
