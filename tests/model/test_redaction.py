"""A list of planted secrets: none of them is in what redaction leaves; and what is none stays."""

from __future__ import annotations

import time

import pytest

from redelivery.model.passport.redaction import redacted, redacted_start

S = "s3cr3tX"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc_-" + S
SECRETS = [
    *(f"amqp://user:{S}@host:5672", f"amqp://user:a/{S}@host", f"https://{S}@github.com/x", f"amqp://u:p@{S}@host"),
    *(f"redis://:{S}@h:6379/0", f"mongodb+srv://u:{S}@c.net/?x=y", f"failover:(tcp://u:{S},x@h1,tcp://h2)"),
    *(f"password={S}", f"DB_PASSWORD={S}", f"PGPASSWORD={S} psql", f"db.password = {S}", f"passphrase={S}"),
    *(f'{{"password": "{S}"}}', f"{{'password': '{S} x'}}", f'{{\\"password\\": \\"{S}\\"}}', f"('password', '{S}')"),
    *(f"Config(password='{S}', x=1)", f"password=b'{S}'", f'password="a\\"{S}"', f"password='{S}"),
    *(f"Server=x;Pwd={S};Uid=1", f"password: {S}", f"passwd:{S}", f"secret:\n  {S}", f"token => {S}"),
    *(f"invalid password '{S}'", f"password is '{S}'", f"--password {S}", f"--db-password={S}", f"pin={S}"),
    *(f"<password>{S}</password>", f"<ns:password type='t'>{S}</ns:password>", f"<dbPassword>{S}</dbPassword>"),
    *(f"Authorization: Basic {S}==", f"authorization: Bearer {S}", f"{{'Authorization': 'Bearer {S}', 'x': 1}}"),
    *(f"[(b'authorization', b'Bearer {S}')]", f"Proxy-Authorization: {S}", f"bearer {S}1234567"),
    f'Authorization: Digest username="a", response="{S}"',
    *(f"Cookie: session={S}; b={S}", f"Set-Cookie: sid={S}; Path=/", f"session_id={S}"),
    *(JWT, f"token {JWT}", f"AccountKey={S}==;Endpoint", f"SharedAccessKey={S}=", f"?sig={S}&x=1"),
    *(f"X-Amz-Signature={S}", f"X-Amz-Credential={S}/2020", f"aws_secret_access_key = {S}", f"secret_key={S}"),
    *(f"api_key={S}", f"apikey: {S}", f"X-Api-Key: {S}", f"client_secret={S}", f"access_token={S}"),
    *(f"refresh_token: '{S}'", f"os.environ['TOKEN']={S}", f"jdbc:mysql://h/db?user=a&password={S}&x=1"),
    f"-----BEGIN RSA PRIVATE KEY-----\n{S}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN PRIVATE KEY-----\n{S}",
    f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n{S}\n-----END PGP PRIVATE KEY BLOCK-----",
    *(f"ghp_{S * 4}", f"github_pat_{S * 4}", f"glpat-{S * 4}", f"xoxb-12-{S * 4}", f"sk_live_{S * 2}", f"sk-{S * 4}"),
    *(f"AIza{S * 5}", f"npm_{S * 4}", f"SG.{S * 2}.{S * 2}", f"hvs.{S * 4}"),
    f"wJalrXUtnFEMI/K7MDENG/bPxRfiC{S}EXAM",
]
PLAIN = [
    *("KeyError: 'sku'", "invalid password for user ada", "basic functionality is missing", "a@b.com: no such user"),
    *("http://host:8080/path failed", "Unexpected token < in JSON at position 0", "spin: 4", "monkey: 3", "pinned=3"),
    *("commit 9a3f5c2e1b8d7f6a5c4b3e2d1f0a9b8c7d6e5f4a", "stomp://host:61613: connection refused", "design=x"),
    *("customer 4711 has no address", "keyboard=de", "ID:host-1-2:3", "the token has expired", ""),
]


@pytest.mark.parametrize("text", SECRETS)
def test_a_planted_secret_is_taken_out(text: str) -> None:
    for each in (text, f"OrderError: {text}", f"could not connect ({text}), giving up", f"[{text}]"):
        assert S not in redacted(each)
    assert "Z9" not in redacted(f"key AKIA{'Z9' * 8}")


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_none_stays(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize("length", range(1900, 2100, 7))
def test_no_secret_is_cut_in_two(length: int) -> None:
    for text in (f"amqp://user:{S * 9}@host", JWT * 3, f"AKIA{'Z9' * 8}", f"wJalrXUtnFEMI/K7MDENG/bPxRfiC{S}EXAM"):
        start = redacted_start("x " * (length // 2) + text + " y" * 5000, 1000)
        assert len(start) <= 1000
        start = redacted_start("x " * (length // 2) + text + " y" * 5000, 2000)
        assert S not in start
        assert "Z9Z9" not in start
        assert start.endswith("…")


@pytest.mark.parametrize(
    "text",
    [
        *("a", "://a:", "password", "password=", "'", '"', "-----BEGIN PRIVATE KEY", "eyJaaaaa.", "x.-", "<", "--"),
        *("A1a", "password='", "authorization: ", "\\", "://", "password ", "token.-", "=", " ", "://@", "bearer "),
    ],
)
def test_a_hostile_text_takes_no_time(text: str) -> None:
    began = time.process_time()
    redacted((text * 8000)[:8000])
    assert time.process_time() - began < 1
