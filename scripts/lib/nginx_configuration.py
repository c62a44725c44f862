"""Makes configurations that nginx can run here from the blocks of docs/nginx.md.

  nginx_configuration.py FOLDER FIRST SECOND SECURE PLAIN

FOLDER has the certificate and its key (cert.pem, key.pem). It gets page.conf, which is the page's
configuration with these two files, and run.conf: that configuration with two servers, on the ports
FIRST and SECOND, behind nginx on the port SECURE, and without TLS on PLAIN.
"""
import re
import sys

folder, first, second, secure, plain = sys.argv[1:]


def replace(pattern, text, by, flags=0):
    """The text with the one place that matches replaced."""
    text, count = re.subn(pattern, lambda _: by, text, flags=flags)
    if count != 1:
        sys.exit(f'nginx: docs/nginx.md has “{pattern}” {count} times, not once')
    return text


def whole(text):
    """A configuration that writes into the folder alone, with the page's text in it."""
    for name, file in [('fullchain', 'cert'), ('privkey', 'key')]:
        text = replace(rf'/etc/ssl/sync\.example\.org/{name}\.pem', text, f'{folder}/{file}.pem')
    places = ''.join(f'    {name}_temp_path {folder}/{name};\n'
                     for name in ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'])
    return (f'daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log notice;\n'
            f'worker_processes 1;\nevents {{}}\nhttp {{\n    access_log {folder}/access.log;\n'
            f'{places}{text}}}\n')


site, two = re.findall(r'^```nginx\n(.*?)^```$', open('docs/nginx.md').read(), re.M | re.S)
open(f'{folder}/page.conf', 'w').write(whole(site))

run = replace(r'^upstream martlet \{.*?^upstream martlet_snapshots \{.*?^\}\n', site, two, re.M | re.S)
run = run.replace('127.0.0.1:8080', f'127.0.0.1:{first}').replace('127.0.0.1:8081', f'127.0.0.1:{second}')
run = run[:run.index('server {\n    listen 80;')]
run = replace('listen 443 ssl http2;', run,
              f'listen 127.0.0.1:{secure} ssl http2; listen 127.0.0.1:{plain};')
run = replace(r'listen \[::\]:443 ssl http2;', run, '')
# All devices have one address here.
run = replace('rate=20r/s', run, 'rate=1000r/s')
open(f'{folder}/run.conf', 'w').write(whole(run))
