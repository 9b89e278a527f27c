-- Renames the temporary keys of a filter to their final names. Returns 0 and changes nothing if
-- Redis has any of the final names.
-- KEYS: definition; temporary name and final name of each key of the filter; hash in which the
-- filter's project keeps the parameters, if there is such a hash
-- ARGV: number of temporary and final names; number of words of the definition; these words, which
-- are fields and values; then fields and values of that hash
local strings, words = tonumber(ARGV[1]) + 1, tonumber(ARGV[2]) + 2
local record = KEYS[strings + 1]
if redis.call('EXISTS', KEYS[1]) == 1 or record and redis.call('EXISTS', record) == 1 then
    return 0
end
for at = 3, strings, 2 do
    if redis.call('EXISTS', KEYS[at]) == 1 then
        return 0
    end
end
for at = 2, strings, 2 do
    if redis.call('EXISTS', KEYS[at]) == 1 then
        redis.call('PERSIST', KEYS[at])
        redis.call('RENAME', KEYS[at], KEYS[at + 1])
    end
end
redis.call('HSET', KEYS[1], unpack(ARGV, 3, words))
if record then
    redis.call('HSET', record, unpack(ARGV, words + 1))
end
return 1
