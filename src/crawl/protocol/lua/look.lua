-- Answers the crawl's head and the holder of its lease, and changes nothing.
-- KEYS: lease, state
-- Answers 'ok', seq, commit_id, lease; each is empty if Redis has no such value.
local found = redis.call('HMGET', KEYS[2], 'seq', 'commit_id')
return {'ok', found[1] or '', found[2] or '', redis.call('GET', KEYS[1]) or ''}
