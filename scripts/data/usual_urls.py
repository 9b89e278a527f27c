"""Invented links that resemble the links of shops, news sites, forums and APIs."""

import random

HOSTS = """
www.example.com shop.example.de news.example.co.uk m.example.fr api.example.io cdn-3.example.net
forum.example.org:8080 www.example.com:443 EXAMPLE.com Www.Example.Com. bücher.example
xn--bcher-kva.example пример.рф 例え.jp münchen.example.de user:secret@intra.example.com 192.0.2.17
[2001:db8::17]:8443 localhost:3000 static.xx.example.net a.b.c.example.com.au
""".split()

PATHS = """
/ /index.html /index.php /de/schuhe/damen/stiefel-aus-leder-p-4711.html /product/4711
/p/B00EXAMPLE/ref=sr_1_3 /news/2023/11/04/some-long-headline-with-words-in-it/ /wiki/Caf%C3%A9
/wiki/Zürich /tag/c%2B%2B /tag/c++ /search /forum/viewtopic.php /node/17;jsessionid=0A1B2C3D4E5F
/servlet;jsessionid=AB12?x /app/page.do;v=1.2 /a/b/../c/./d.html /images/logo%20small.png
/images/logo small.png /files/report(final)[2].pdf /~user/cgi-bin/test.cgi
/api/v2/items/17/reviews /category/shoes,boots/size:42/ /de//doppelt//slash /en-US/docs/Web/HTTP
/catalog/%7Bid%7D /feed.xml /path%2Fwith%2Fslashes /%D0%BF%D1%80%D0%B8%D0%B2%D0%B5%D1%82 /привет
/@someone/posts/1 /maps/@52.52,13.40,12z
""".split()

PARAMETERS = """
id=4711 page=2 page=10 q=rust+url+parser q=a%20b q=%E4%B8%AD%E6%96%87 q=中文 sort=price_asc
sort=-date utm_source=newsletter utm_medium=email utm_campaign=spring%20sale utm_content=a%26b
gclid=EAIaIQobChMI-x_y fbclid=IwAR0abc-DEF_123 PHPSESSID=0a1b2c3d4e5f sid=9f8e7d sessionid=
ref=/home?x=1 ref=%2Fhome%3Fx%3D1 redirect=https%3A%2F%2Fexample.com%2F%3Fa%3Db
redirect=https://example.com/?a=b filter[color]=red filter%5Bcolor%5D=blue ids[]=1 ids[]=2
ids%5B%5D=3 lang=de-DE lang=en_US t=1699104000 v=1.2.3 callback=jQuery1 _=1699104000123 size=42,43
price=10-20 lat=52.52 lon=13.40 q= q debug a=1;b=2 tag=c%2b%2b tag=c%2B%2B tag=c++ x=~tilde
y=star* z=(paren) w=it's e=%zz e=100% email=a@b.example hash=%23top time=10:30 json={"a":1}
json=%7B%22a%22%3A1%7D ä=ö %C3%A4=%C3%B6 A=1 a=1 B=2 b=2
""".split()

FRAGMENTS = ["", "", "", "#top", "#section-2", "#!/route/1", "#:~:text=some%20words", "#a=1", "#ü"]


def links(seed, count):
    """Makes `count` links. The same seed gives the same links."""
    rng = random.Random(seed)
    for _ in range(count):
        scheme = rng.choice(("http", "https", "https", "https", "HTTPS"))
        path = rng.choice(PATHS)
        parameters = rng.sample(PARAMETERS, rng.choice((0, 0, 1, 2, 3, 3, 5, 8)))
        query = ("&" if "?" in path else "?") + "&".join(parameters) if parameters else ""
        yield f"{scheme}://{rng.choice(HOSTS)}{path}{query}{rng.choice(FRAGMENTS)}"
