-- Pushes a batch of items to a source, unless it is the last batch that was pushed with this script.
-- So a caller that was killed may repeat the call.
-- KEYS: source, name of the last batch
-- ARGV: name of the batch, its items
local refusal = type_refusal(KEYS[1], 'list')
    or permission_refusal('RPUSH', KEYS[1], '')
    or permission_refusal('SET', KEYS[2], '')
if refusal then
    return refusal
end
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
    redis.call('SET', KEYS[2], ARGV[1], 'EX', 7 * 86400)
    push_arguments('RPUSH', KEYS[1], 2)
end
