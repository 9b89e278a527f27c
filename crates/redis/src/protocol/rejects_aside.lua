-- Sets all rejects aside by a rename of their list, or moves rejects that are aside back to the
-- list. There they come before its other rejects, in their old order.
-- KEYS: aside, rejects
-- ARGV: 'aside' or 'back', maximum number of rejects to move back
-- Answers the number of rejects that are aside now; -1 if rejects were to be set aside and others
--       were aside already, of which some are on the list again; or an error.
-- Never drops or repeats a reject.
local aside, rejected = unpack(KEYS)
local wanted, most = ARGV[1], tonumber(ARGV[2])

local refusal = type_refusal(aside, 'list')
    or type_refusal(rejected, 'list')
    or permission_refusal('LMOVE', aside, rejected, 'RIGHT', 'LEFT')
    or permission_refusal('RENAME', aside, rejected)
    or permission_refusal('RENAME', rejected, aside)
if refusal then
    return refusal
end
local is_aside = redis.call('EXISTS', aside) == 1
local is_listed = redis.call('EXISTS', rejected) == 1
if is_aside and is_listed then
    for _ = 1, math.min(most, redis.call('LLEN', aside)) do
        redis.call('LMOVE', aside, rejected, 'RIGHT', 'LEFT')
    end
elseif is_aside then
    redis.call('RENAME', aside, rejected)
elseif is_listed and wanted == 'aside' then
    redis.call('RENAME', rejected, aside)
end
if is_aside and wanted == 'aside' then
    return -1
end
return redis.call('LLEN', aside)
