-- Publishes the partition table, unless Redis has another one or a crawl with one partition.
-- KEYS: crawl record, state of a crawl with one partition
-- ARGV: 'publish', or 'check' if the script is to change nothing; number of fields that must not
--       change, their names, then all fields and values. The first field is the protocol
-- Answers 'ok'; or 'table', the field that differs, and its value in Redis; 'record', protocol and
--       version of a later urlseen; or an error.
-- Never changes a field on which the processes of a crawl agree.
local record, state = unpack(KEYS)
local fixed = tonumber(ARGV[2])
local first = fixed + 3

if redis.call('HEXISTS', state, 'seq') == 1 then
    return {'table', 'partitions', '1'}
end
local found = redis.call('HMGET', record, 'protocol', 'urlseen')
local theirs, ours = tonumber(found[1] or 0), tonumber(ARGV[first + 1])
if not theirs or theirs > ours then
    return {'record', found[1], found[2] or ''}
end
local wanted = {}
for index = first, #ARGV, 2 do
    wanted[ARGV[index]] = ARGV[index + 1]
end
for index = 3, fixed + 2 do
    local value = redis.call('HGET', record, ARGV[index])
    if value and value ~= wanted[ARGV[index]] then
        return {'table', ARGV[index], value}
    end
end
if ARGV[1] == 'publish' then
    redis.call('HSET', record, unpack(ARGV, first))
end
return {'ok'}
