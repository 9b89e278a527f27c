-- Claims all that the source holds, where nothing claimed is left.
-- KEYS: lease, taken, source
-- ARGV: token
-- Answers 'ok' and how many items are claimed now.
local lease, taken, source = unpack(KEYS)

local refusal = lease_refusal(lease, ARGV[1])
    or type_refusal(taken, 'list')
    or type_refusal(source, 'list')
if refusal then
    return refusal
end
local length = redis.call('LLEN', taken)
if length == 0 and redis.call('EXISTS', source) == 1 then
    redis.call('RENAME', source, taken)
    length = redis.call('LLEN', taken)
end
return {'ok', length}
