-- Claims all that the source holds, where nothing claimed is left.
-- KEYS: lease, processing, source
-- ARGV: token
-- Answers 'ok' and how many items are claimed now.
local lease, processing, source = unpack(KEYS)

local refusal = lease_refusal(lease, ARGV[1])
if refusal then
    return refusal
end
-- These refuse keys of another type, too.
local length = redis.call('LLEN', processing)
if length == 0 then
    length = redis.call('LLEN', source)
    if length > 0 then
        redis.call('RENAME', source, processing)
    end
end
return {'ok', length}
