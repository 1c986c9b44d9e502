#!/usr/bin/env python3
"""Alerts of real nodes to a real web server, and `matins alerts`, on each store."""
import datetime
import http.server
import json
import os
import threading

from support import StoreCase, eventually, main

SECRET = 'hush-8d1f'


class Receiver:
    """A web server that keeps what it is told."""

    def __init__(self, case):
        receiver = self
        self.told, self.pings, self.status = [], [], 200

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length']))
                if receiver.status == 200:
                    receiver.told.append((self.path, self.headers, json.loads(body)))
                self.answer()

            def do_GET(self):
                receiver.pings.append(self.path)
                self.answer()

            def answer(self):
                self.send_response(receiver.status)
                self.send_header('Content-Length', '0')
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        case.addCleanup(self.server.server_close)
        case.addCleanup(self.server.shutdown)

    @property
    def url(self):
        return f'http://127.0.0.1:{self.server.server_port}/{SECRET}'

    def subjects(self):
        return [message['subject'] for _, _, message in self.told]


def jobs(ping=''):
    return f'''
alerts:
  channels:
    ops:
      kind: webhook
      url: {{ env: OPS_URL }}
      headers: {{ X-Token: {{ env: OPS_TOKEN }} }}
{ping}
jobs:
  - name: recon
    schedule: "@yearly"
    misfire: latest
    run: {{ command: [/bin/false] }}
    retry: {{ attempts: 1 }}
'''


class Alerts:
    def setUp(self):
        self.receiver = Receiver(self)
        super().setUp()
        self.file = os.path.join(self.folder, 'matins.yaml')
        self.write(jobs())

    def write(self, text):
        with open(self.file, 'w') as f:
            f.write(text)

    def env(self):
        return {**super().env(), 'OPS_URL': self.receiver.url, 'OPS_TOKEN': SECRET}

    def alerts(self, *args):
        return self.json('alerts', 'list', *args)['alerts']

    def test_what_fails_is_told_once_by_two_nodes_and_once_when_it_is_made_good(self):
        nodes = [self.node(self.file), self.node(self.file)]
        self.run_matins('run', 'recon', '--reason', 'a try')
        eventually('the alert', lambda: self.receiver.told)
        [(path, headers, message)] = self.receiver.told
        self.assertEqual(path, f'/{SECRET}')
        self.assertEqual(headers['X-Token'], SECRET)
        self.assertEqual(message['step'], 'fire')
        self.assertEqual([alert['job'] for alert in message['alerts']], ['recon'])
        self.assertIn('FAILED', message['text'])
        [alert] = eventually('that it was told', lambda: [one for one in self.alerts() if one['told_at']])
        self.assertEqual((alert['kind'], alert['channel']), ('failed', 'ops'))
        self.assertIn('failed', self.ok('alerts', 'list'))
        self.assertIn(alert['text'], self.ok('alerts', 'show', str(alert['alert'])))

        # Nothing of the secret is where others look.
        for node in nodes:
            self.assertNotIn(SECRET, node.text())
            with open(f'/proc/{node.process.pid}/cmdline') as f:
                self.assertNotIn(SECRET, f.read())
        for table in ('job_alert', 'job_version', 'job', 'job_event'):
            self.assertNotIn(SECRET, str(self.sql(f'SELECT * FROM {table}')))

        # A run of a later period makes the job good.
        self.write(jobs().replace('/bin/false', '/bin/true'))
        self.ok('job', 'apply', self.file)
        self.ok('run', 'recon', '--reason', 'mended')
        eventually('that it is good again', lambda: len(self.receiver.told) == 2)
        self.assertEqual(self.receiver.told[1][2]['step'], 'resolve')
        eventually('that nothing stands', lambda: not self.alerts())
        for node in nodes:
            self.assertEqual(node.stop(), 0)
        self.assertEqual(len(self.receiver.told), 2)
        self.assertIn('alert_sent', nodes[0].text() + nodes[1].text())

    def test_a_channel_that_does_not_take_it_is_tried_by_the_next_node(self):
        self.receiver.status = 503
        node = self.node(self.file)
        self.run_matins('run', 'recon', '--reason', 'a try')
        [alert] = eventually('a failed attempt', lambda: [one for one in self.alerts() if one['last_error']])
        self.assertIn('503', alert['last_error'])
        node.told('alert_failed')
        self.assertNotIn(SECRET, node.text())
        self.assertEqual(node.stop(), 0)
        self.receiver.status = 200
        self.sql('UPDATE job_alert SET next_at = opened_at')  # half a minute later
        self.node(self.file)
        eventually('the alert', lambda: self.receiver.told)
        self.assertEqual(len(self.receiver.told), 1)

    def test_silence_and_acknowledgement_are_recorded_with_who_and_why(self):
        node = self.node(self.file)
        self.refused(2, 'alerts', 'silence', 'recon', '--for', '1h', says=['--reason'])
        self.refused(2, 'alerts', 'silence', '--for', '1h', '--reason', 'x', says=['JOB'])
        self.refused(3, 'alerts', 'silence', 'nobody', '--for', '1h', '--reason', 'x', says=['nobody'])
        number = str(self.json('alerts', 'silence', 'recon', '--for', '1h', '--reason', 'the bank is down')['silence'])
        self.run_matins('run', 'recon', '--reason', 'a try')
        eventually('the alert', lambda: self.alerts())
        self.assertIn('the bank is down', self.ok('alerts', 'silences'))
        self.assertEqual(self.receiver.told, [])
        self.ok('alerts', 'unsilence', number, '--reason', 'it is up')
        eventually('that it is told', lambda: self.receiver.told)
        [alert] = eventually('that it was told', lambda: [one for one in self.alerts() if one['told_at']])
        self.ok('alerts', 'ack', str(alert['alert']), '--reason', 'on it')
        self.refused(4, 'alerts', 'ack', str(alert['alert']), '--reason', 'me too', says=['acknowledged'])
        self.refused(3, 'alerts', 'ack', '99999', '--reason', 'x', says=['alerts list'])
        [acked] = self.alerts()
        self.assertEqual(acked['acked_why'], 'on it')
        events = {row[0]: row[1] for row in self.sql("SELECT kind, why FROM job_event WHERE kind IN ('silenced', 'unsilenced', 'acked')")}
        self.assertEqual(events, {'silenced': 'the bank is down', 'unsilenced': 'it is up', 'acked': 'on it'})
        self.assertEqual(node.stop(), 0)

    def test_without_a_node_a_call_looks_and_sends(self):
        node = self.node(self.file)
        self.assertEqual(node.stop(), 0)
        self.ok('alerts', 'send', '--file', self.file)
        other = self.node()
        self.run_matins('run', 'recon', '--reason', 'a try')
        eventually('the end', lambda: self.json('status')['failed'])
        self.assertEqual(other.stop(), 0)
        self.assertEqual(self.receiver.told, [], 'a node without channels tells nobody')
        self.assertIn('recon', self.ok('alerts', 'send', '--file', self.file))
        self.assertEqual(len(self.receiver.told), 1)
        self.assertIn('nothing to tell', self.ok('alerts', 'send', '--file', self.file))

    def test_without_a_node_such_calls_audit_too(self):
        day = (datetime.datetime.now(datetime.timezone.utc).date() - datetime.timedelta(days=2)).isoformat()
        self.write(f'''
alerts: {{ channels: {{ ops: {{ kind: webhook, url: {{ env: OPS_URL }} }} }} }}
jobs:
  - name: nightly
    schedule: "0 0 * * *"
    period: day
    biz_date: -1d
    misfire: each
    done_by: 1s
    backfill: {{ start: {day} }}
    run: {{ command: [/bin/true] }}
''')
        self.ok('job', 'apply', self.file)
        eventually('the deadline', lambda: self.run_matins('audit').returncode == 1)
        self.ok('alerts', 'send', '--file', self.file)
        self.assertEqual({alert['kind'] for _, _, message in self.receiver.told for alert in message['alerts']}, {'absent'})
        self.ok('audit', '--check-age', '1h')


class OnSqlite(Alerts, StoreCase):
    kind = 'sqlite'

    def test_a_test_message_goes_to_the_channel_that_is_named(self):
        self.assertIn('has taken a message', self.ok('alerts', 'test', 'ops', '--file', self.file))
        self.assertEqual(self.receiver.told[0][2]['step'], 'test')
        self.refused(3, 'alerts', 'test', 'opps', '--file', self.file, says=['no channel', 'ops'])
        self.receiver.status = 403
        said = self.refused(5, 'alerts', 'test', 'ops', '--file', self.file, says=['403'])
        self.assertNotIn(SECRET, said)

    def test_a_secret_that_is_not_there_is_said_at_the_start(self):
        self.write(jobs().replace('OPS_TOKEN', 'NO_SUCH_TOKEN'))
        node = self.node(self.file)
        self.assertIn('channel ops: the variable NO_SUCH_TOKEN is not set', node.text())
        self.run_matins('run', 'recon', '--reason', 'a try')
        [alert] = eventually('a failed attempt', lambda: [one for one in self.alerts() if one['last_error']])
        self.assertIn('NO_SUCH_TOKEN', alert['last_error'])
        self.assertEqual(node.stop(), 0)

    def test_an_address_is_called_around_each_audit(self):
        self.write(jobs('ping: { env: OPS_URL }'))
        node = self.node(self.file)
        eventually('the pings', lambda: len(self.receiver.pings) >= 4)
        self.assertEqual(set(self.receiver.pings), {f'/{SECRET}/start', f'/{SECRET}'})
        self.assertEqual(self.receiver.pings[0], f'/{SECRET}/start')
        self.assertEqual(node.stop(), 0)

    def test_a_ping_that_fails_is_told_and_holds_up_no_audit(self):
        self.write(jobs('ping: "http://127.0.0.1:1/x"'))
        node = self.node(self.file)
        eventually('the audits', lambda: node.text().count(' audited') >= 2)
        eventually('the alert', lambda: any('ping' in subject for subject in self.receiver.subjects()))
        self.assertEqual(node.stop(), 0)


class OnPostgresql(Alerts, StoreCase):
    kind = 'postgresql'


class OnMariadb(Alerts, StoreCase):
    kind = 'mariadb'


if __name__ == '__main__':
    main()
